//! Reads passwords from stdin, the environment or a prompt; never from the command line, which
//! other users of the machine can read.

use std::io::{self, BufRead as _};

use super::error::Error;
use super::prompt;

const MAX_BYTES: u64 = 4096;

/// Source of the password.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Source {
    /// Read the password from the first line of stdin (or set PADDOCK_PASSWORD)
    #[arg(long)]
    password_stdin: bool,
}

impl Source {
    /// Reads the password of an existing user.
    pub(crate) fn read(self) -> Result<String, Error> {
        self.read_or(|| prompt::secret("Password"))
    }

    /// Reads a password for a new user; a prompt asks twice, because the input is hidden.
    pub(crate) fn read_new(self) -> Result<String, Error> {
        self.read_or(prompt_new)
    }

    /// Reads the current and the new password of a user: the first two lines of stdin, or prompts.
    pub(crate) fn read_change(self) -> Result<(String, String), Error> {
        if self.password_stdin {
            return first_lines(io::stdin().lock());
        }
        if prompt::is_interactive() {
            let current = prompt::secret("Current password")?;
            return Ok((current, prompt_new()?));
        }
        Err(Error::Usage("no passwords: use --password-stdin".into()))
    }

    fn read_or(self, prompt: impl FnOnce() -> Result<String, Error>) -> Result<String, Error> {
        if self.password_stdin {
            return first_line(io::stdin().lock());
        }
        if let Some(password) = std::env::var("PADDOCK_PASSWORD").ok().filter(|p| !p.is_empty()) {
            return Ok(password);
        }
        if prompt::is_interactive() {
            return prompt();
        }
        Err(Error::Usage("no password: use --password-stdin or set PADDOCK_PASSWORD".into()))
    }
}

fn prompt_new() -> Result<String, Error> {
    let first = prompt::secret("New password")?;
    if prompt::secret("Repeat password")? == first {
        return Ok(first);
    }
    Err(Error::failed("passwords do not match"))
}

fn first_lines(mut input: impl io::BufRead) -> Result<(String, String), Error> {
    let current = first_line(&mut input)?;
    let new = first_line(&mut input).map_err(|_| {
        let rule = "--password-stdin: needs the current password and the new one, on two lines";
        Error::Usage(rule.into())
    })?;
    Ok((current, new))
}

fn first_line(input: impl io::BufRead) -> Result<String, Error> {
    let mut line = String::new();
    let read = input.take(MAX_BYTES).read_line(&mut line);
    read.map_err(|error| Error::failed(format!("cannot read the password: {error}")))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(Error::Usage("--password-stdin: stdin is empty".into()));
    }
    Ok(password.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_is_the_password() {
        for (input, want) in [
            ("secret\n", Some("secret")),
            ("secret", Some("secret")),
            (" with blanks \r\nand more", Some(" with blanks ")),
            ("\n", None),
            ("", None),
        ] {
            assert_eq!(first_line(input.as_bytes()).ok().as_deref(), want, "{input:?}");
        }
    }

    #[test]
    fn change_reads_two_lines() {
        let read = |input: &str| first_lines(input.as_bytes()).ok();
        assert_eq!(read("old\nnew\n"), Some(("old".into(), "new".into())));
        assert_eq!(read("old\n"), None);
        assert_eq!(read(""), None);
    }
}
