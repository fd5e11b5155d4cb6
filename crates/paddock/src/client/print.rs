//! Writes results to stdout and notes to stderr.

use std::io::{self, ErrorKind, Write};

use super::error::Error;
use super::http::ApiResponse;
use super::table;

/// Output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    // Not doc comments: documented values would double the length of every `--help`.
    // Aligned columns.
    #[default]
    Table,
    // The server's response, unchanged.
    Json,
}

/// The only writer of stdout.
pub(crate) struct Printer {
    output: Output,
    out: Box<dyn Write + Send>,
}

impl Printer {
    /// Prints to stdout.
    pub(crate) fn stdout(output: Output) -> Self {
        Self { output, out: Box::new(io::stdout()) }
    }

    /// Prints a response as JSON, or as rendered by `render`.
    pub(crate) fn response(
        &mut self,
        response: &ApiResponse,
        render: impl FnOnce() -> Result<String, Error>,
    ) -> Result<(), Error> {
        match self.output {
            Output::Json => self.text(&response.body),
            Output::Table => self.text(&render()?),
        }
    }

    /// Prints a response as JSON, or only a note.
    pub(crate) fn response_or_note(
        &mut self,
        response: &ApiResponse,
        note: &str,
    ) -> Result<(), Error> {
        match self.output {
            Output::Json if !response.body.is_empty() => self.text(&response.body),
            _ => {
                self.note(note);
                Ok(())
            }
        }
    }

    /// Whether the output format is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Prints one or more whole lines.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Error> {
        self.bytes(text.trim_end_matches('\n').as_bytes())?;
        self.bytes(b"\n")
    }

    /// Prints bytes unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(|error| {
            match error.kind() {
                ErrorKind::BrokenPipe => Error::OutputClosed,
                _ => Error::failed(format!("cannot write to stdout: {error}")),
            }
        })
    }

    /// Prints a note to stderr, which is not part of the result.
    #[expect(clippy::unused_self, reason = "all output goes through the printer")]
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
    fn closed_output_is_not_a_failure() {
        let mut printer = Printer { output: Output::Table, out: Box::new(Closed) };
        let error = printer.text("x").unwrap_err();
        assert!(matches!(error, Error::OutputClosed));
        assert_eq!(error.exit_code(), std::process::ExitCode::SUCCESS);
    }
}
