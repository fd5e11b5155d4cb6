//! The one place that writes to stdout.

use std::io::{self, ErrorKind, Write};

use super::error::Error;
use super::http::Answer;
use super::table;

/// How answers are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    // Plain comments: documented values would make every `--help` twice as long.
    // Aligned columns, for people.
    #[default]
    Table,
    // The server's answer as it came, for programs.
    Json,
}

/// Prints results to stdout, and remarks for people to stderr.
pub(crate) struct Printer {
    output: Output,
    out: Box<dyn Write + Send>,
}

impl Printer {
    /// Prints to the process's stdout.
    pub(crate) fn stdout(output: Output) -> Self {
        Self { output, out: Box::new(io::stdout()) }
    }

    /// Prints an answer: as it came, or as what `render` makes of it.
    pub(crate) fn answer(
        &mut self,
        answer: &Answer,
        render: impl FnOnce() -> Result<String, Error>,
    ) -> Result<(), Error> {
        match self.output {
            Output::Json => self.text(&answer.body),
            Output::Table => self.text(&render()?),
        }
    }

    /// Prints an answer of which people need only a remark.
    pub(crate) fn answer_or_note(&mut self, answer: &Answer, note: &str) -> Result<(), Error> {
        match self.output {
            Output::Json if !answer.body.is_empty() => self.text(&answer.body),
            _ => {
                self.note(note);
                Ok(())
            }
        }
    }

    /// Whether answers are printed as they came.
    pub(crate) fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Prints one or more whole lines.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Error> {
        self.bytes(text.trim_end_matches('\n').as_bytes())?;
        self.bytes(b"\n")
    }

    /// Prints just these bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(|error| {
            match error.kind() {
                ErrorKind::BrokenPipe => Error::OutputClosed,
                _ => Error::failed(format!("can't write the output: {error}")),
            }
        })
    }

    /// Remarks something to whoever watches; it is no part of the result.
    #[expect(clippy::unused_self, reason = "who prints also remarks")]
    pub(crate) fn note(&self, text: &str) {
        eprintln!("{}", table::clean(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_not_a_failure() {
        let mut printer = Printer { output: Output::Table, out: Box::new(Closed) };
        let error = printer.text("x").unwrap_err();
        assert!(matches!(error, Error::OutputClosed));
        assert_eq!(error.exit_code(), std::process::ExitCode::SUCCESS);
    }
}
