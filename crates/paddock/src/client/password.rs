//! Where a password comes from: stdin, the environment or a prompt, never the command line,
//! where every other user of the machine could read it.

use std::io::{self, BufRead as _};

use super::error::Error;
use super::prompt;

const MAX_BYTES: u64 = 4096;

/// How the password is given.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Source {
    /// Reads the password from the first line of stdin (or set PADDOCK_PASSWORD)
    #[arg(long)]
    password_stdin: bool,
}

impl Source {
    /// Gets the password of somebody who has one.
    pub(crate) fn read(self) -> Result<String, Error> {
        self.read_or(|| prompt::secret("Password"))
    }

    /// Gets a password for somebody new: a prompt asks twice, since nobody sees what is typed.
    pub(crate) fn read_new(self) -> Result<String, Error> {
        self.read_or(|| {
            let first = prompt::secret("New password")?;
            if prompt::secret("The same again")? == first {
                return Ok(first);
            }
            Err(Error::failed("the two passwords are not the same"))
        })
    }

    fn read_or(self, ask: impl FnOnce() -> Result<String, Error>) -> Result<String, Error> {
        if self.password_stdin {
            return first_line(io::stdin().lock());
        }
        if let Some(password) = std::env::var("PADDOCK_PASSWORD").ok().filter(|p| !p.is_empty()) {
            return Ok(password);
        }
        if prompt::is_interactive() {
            return ask();
        }
        Err(Error::Usage("no password: use --password-stdin or set PADDOCK_PASSWORD".into()))
    }
}

fn first_line(input: impl io::BufRead) -> Result<String, Error> {
    let mut line = String::new();
    let read = input.take(MAX_BYTES).read_line(&mut line);
    read.map_err(|error| Error::failed(format!("can't read the password: {error}")))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(Error::Usage("--password-stdin was given, but stdin is empty".into()));
    }
    Ok(password.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_password() {
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
}
