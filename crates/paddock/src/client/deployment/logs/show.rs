//! Lines of a log as people see them.

use std::io::{self, IsTerminal as _};

use super::super::super::error::Error;
use super::super::super::print::Printer;
use super::super::super::table;
use super::line::Line;

/// How lines are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Show {
    timestamps: bool,
    /// Whether to say which replica it was.
    numbers: bool,
    /// What containers say goes into files as it is, but must not steer a terminal.
    is_terminal: bool,
}

impl Show {
    /// Shows lines on stdout.
    pub(super) fn new(timestamps: bool, numbers: bool) -> Self {
        Self { timestamps, numbers, is_terminal: io::stdout().is_terminal() }
    }

    /// From now on says which replica it was.
    pub(super) fn with_numbers(&mut self) {
        self.numbers = true;
    }

    /// Prints one line.
    pub(super) fn print(self, printer: &mut Printer, line: &Line) -> Result<(), Error> {
        let text = if printer.is_json() { line.raw.clone() } else { self.text(line) };
        printer.bytes(format!("{text}\n").as_bytes())
    }

    fn text(self, line: &Line) -> String {
        let at = if self.timestamps { format!("{} ", line.said.at) } else { String::new() };
        let number = if self.numbers { format!("[{}] ", line.said.replica) } else { String::new() };
        let said =
            if self.is_terminal { table::tame(&line.said.text) } else { line.said.text.clone() };
        format!("{at}{number}{said}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_asked_for() {
        let line = Line::read(
            br#"{"replica":2,"at":"2026-01-02T03:04:05Z","source":"stdout","text":"a\tb\u001b[2J","next":"1"}"#,
        )
        .unwrap();
        for (timestamps, numbers, is_terminal, want) in [
            (false, false, false, "a\tb\u{1b}[2J"),
            (false, false, true, "a\tb\u{fffd}[2J"),
            (false, true, true, "[2] a\tb\u{fffd}[2J"),
            (true, true, true, "2026-01-02T03:04:05Z [2] a\tb\u{fffd}[2J"),
        ] {
            let show = Show { timestamps, numbers, is_terminal };
            assert_eq!(show.text(&line), want);
        }
    }
}
