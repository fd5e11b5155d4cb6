//! Prints log lines.

use std::io::{self, IsTerminal as _};

use super::super::super::error::Error;
use super::super::super::print::Printer;
use super::super::super::table;
use super::line::Line;

/// Output options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Show {
    timestamps: bool,
    /// Whether to prefix lines with the replica number.
    numbers: bool,
    /// Whether to replace control characters: container output must not control the terminal.
    is_terminal: bool,
}

impl Show {
    /// Prints to stdout.
    pub(super) fn new(timestamps: bool, numbers: bool) -> Self {
        Self { timestamps, numbers, is_terminal: io::stdout().is_terminal() }
    }

    /// Prefixes lines with the replica number from now on.
    pub(super) fn with_numbers(&mut self) {
        self.numbers = true;
    }

    /// Prints one line.
    pub(super) fn print(self, printer: &mut Printer, line: &Line) -> Result<(), Error> {
        let text = if printer.is_json() { line.raw.clone() } else { self.text(line) };
        printer.bytes(format!("{text}\n").as_bytes())
    }

    fn text(self, line: &Line) -> String {
        let line = &line.parsed;
        let at = if self.timestamps { format!("{} ", line.at) } else { String::new() };
        let number = if self.numbers { format!("[{}] ", line.replica) } else { String::new() };
        let text = if self.is_terminal { table::tame(&line.text) } else { line.text.clone() };
        format!("{at}{number}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_formatted_as_requested() {
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
