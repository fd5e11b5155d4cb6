//! Progress on stderr: a spinner or bar at a terminal, plain lines otherwise.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::table;

/// Progress of one subject.
pub(crate) struct Progress {
    label: String,
    spinner: Option<ProgressBar>,
    last: String,
}

impl Progress {
    /// Shows the state of `label`.
    pub(crate) fn new(label: &str) -> Self {
        let spinner = io::stderr().is_terminal().then(spinner);
        Self { label: table::clean(label), spinner, last: String::new() }
    }

    /// Shows the state of `label` with a percentage.
    pub(crate) fn with_percent(label: &str) -> Self {
        let spinner = io::stderr().is_terminal().then(bar);
        Self { label: table::clean(label), spinner, last: String::new() }
    }

    /// Shows a state; repeated states are shown once.
    pub(crate) fn show(&mut self, state: &str) {
        let line = format!("{}: {}", self.label, table::clean(state));
        if line == self.last {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner.set_message(line.clone()),
            None => eprintln!("{line}"),
        }
        self.last = line;
    }

    /// Shows a percentage and a state.
    pub(crate) fn show_percent(&mut self, percent: u64, state: &str) {
        match &self.spinner {
            Some(spinner) => {
                spinner.set_position(percent.min(100));
                self.show(state);
            }
            None => self.show(&format!("{percent} %: {state}")),
        }
    }

    /// Shows an activity; at a terminal, the next one replaces it.
    pub(crate) fn activity(&self, text: &str) {
        let text = table::clean(text);
        match &self.spinner {
            // Without the label, to leave space for the activity.
            Some(spinner) => spinner.set_message(text),
            None => eprintln!("{}: {text}", self.label),
        }
    }

    /// Prints a permanent line.
    pub(crate) fn done(&self, text: &str) {
        let line = format!("{}: {}", self.label, table::clean(text));
        match &self.spinner {
            Some(spinner) => spinner.println(line),
            None => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // The last state stays visible above the following output.
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
            if !self.last.is_empty() {
                eprintln!("{}", self.last);
            }
        }
    }
}

fn spinner() -> ProgressBar {
    styled(ProgressBar::new_spinner(), "{spinner} {elapsed} {wide_msg}")
}

fn bar() -> ProgressBar {
    styled(ProgressBar::new(100), "{spinner} {elapsed} [{bar:20}] {percent:>3} % {wide_msg}")
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.expect("the template is constant and tested by every use"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    #[test]
    fn templates_are_valid() {
        super::spinner().finish_and_clear();
        super::bar().finish_and_clear();
    }
}
