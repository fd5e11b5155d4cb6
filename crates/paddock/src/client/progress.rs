//! Shows on stderr where something is: a spinner for people, plain lines for logs.

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
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    let bar = ProgressBar::new_spinner();
    bar.set_style(style.expect("the template is constant and tested by every use"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_spinner_can_be_made() {
        super::spinner().finish_and_clear();
    }
}
