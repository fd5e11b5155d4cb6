//! Interactive prompts.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use terminal::Term;

use super::error::Error;
use super::table;

/// Whether the user can be prompted.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Prompts for a line; an empty one means `default`.
pub(crate) fn line(question: &str, default: Option<&str>) -> Result<String, Error> {
    let shown = default.map(|text| format!(" [{text}]")).unwrap_or_default();
    ask(&format!("{question}{shown}: "))?;
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).map_err(|error| unreadable(&error))?;
    let text = text.trim();
    Ok(if text.is_empty() { default.unwrap_or_default() } else { text }.to_owned())
}

/// Prompts for a secret without echo.
pub(crate) fn secret(question: &str) -> Result<String, Error> {
    ask(&format!("{question}: "))?;
    Term::stderr().read_secure_line().map_err(|error| unreadable(&error))
}

/// Asks for confirmation. Without a terminal, the command line counts as confirmation.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), Error> {
    if yes || !io::stdin().is_terminal() {
        return Ok(());
    }
    let answer = line(&format!("{question} [y/N]"), None)?;
    if matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Error::failed("cancelled; no changes made"))
}

fn ask(question: &str) -> Result<(), Error> {
    let mut stderr = io::stderr();
    write!(stderr, "{}", table::clean(question))
        .and_then(|()| stderr.flush())
        .map_err(|e| unreadable(&e))
}

fn unreadable(error: &io::Error) -> Error {
    Error::failed(format!("cannot read from the terminal: {error}"))
}
