//! Shows on stderr where something is: a spinner or a bar for people, plain lines for logs.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::table;

/// Where one subject is.
pub(crate) struct Progress {
    label: String,
    spinner: Option<ProgressBar>,
    last: String,
}

impl Progress {
    /// Begins to show where `label` is.
    pub(crate) fn new(label: &str) -> Self {
        let spinner = io::stderr().is_terminal().then(spinner);
        Self { label: table::clean(label), spinner, last: String::new() }
    }

    /// Begins to show how much of `label` is done.
    pub(crate) fn of_percent(label: &str) -> Self {
        let spinner = io::stderr().is_terminal().then(bar);
        Self { label: table::clean(label), spinner, last: String::new() }
    }

    /// Shows a state; the same one twice is shown once.
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

    /// Shows how much is done, and the state.
    pub(crate) fn show_percent(&mut self, percent: u64, state: &str) {
        match &self.spinner {
            Some(spinner) => {
                spinner.set_position(percent.min(100));
                self.show(state);
            }
            None => self.show(&format!("{percent} %: {state}")),
        }
    }

    /// Shows what goes on besides: for people only until something else does.
    pub(crate) fn doing(&self, what: &str) {
        let what = table::clean(what);
        match &self.spinner {
            // Of what, the bar has said before: the room is for what is new.
            Some(spinner) => spinner.set_message(what),
            None => eprintln!("{}: {what}", self.label),
        }
    }

    /// Shows what is over; that stays readable.
    pub(crate) fn done(&self, what: &str) {
        let line = format!("{}: {}", self.label, table::clean(what));
        match &self.spinner {
            Some(spinner) => spinner.println(line),
            None => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // The last state stays readable above whatever is printed next.
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
            if !self.last.is_empty() {
                eprintln!("{}", self.last);
            }
        }
    }
}

fn spinner() -> ProgressBar {
    drawn(ProgressBar::new_spinner(), "{spinner} {elapsed} {wide_msg}")
}

fn bar() -> ProgressBar {
    drawn(ProgressBar::new(100), "{spinner} {elapsed} [{bar:20}] {percent:>3} % {wide_msg}")
}

fn drawn(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.expect("the template is constant and tested by every use"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_drawn_can_be_made() {
        super::spinner().finish_and_clear();
        super::bar().finish_and_clear();
    }
}
