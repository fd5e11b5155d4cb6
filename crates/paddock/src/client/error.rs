//! What can go wrong for somebody at a terminal: what happened, and what to do next.

use std::process::ExitCode;

use super::hint;
use super::problem::Problem;
use super::table;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line can't be carried out as it is written.
    Usage(String),
    /// There is no token for this server.
    SignedOut { server: String },
    /// Nobody answers there.
    Unreachable { server: String, why: String },
    /// The server understood, and said no.
    Refused(Box<Refusal>),
    /// Everything else.
    Failed { what: String, next: Option<String> },
    /// Whoever read our output has gone (`paddock events | head`). Nothing is wrong.
    OutputClosed,
}

/// An answer of the server that says no.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) problem: Problem,
    /// The `Retry-After` header: seconds, or a date.
    pub(crate) retry_after: Option<String>,
    /// Whether the call was made with a token.
    pub(crate) with_token: bool,
}

impl Error {
    /// A failure that leaves nothing to be done.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), next: None }
    }

    /// A failure, and the way on.
    pub(crate) fn failed_but(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), next: Some(next.into()) }
    }

    /// The same, with the way on for who has been told of none.
    pub(crate) fn or_next(self, next: impl Into<String>) -> Self {
        match self {
            Self::Refused(_) | Self::Failed { .. } if self.next().is_none() => {
                Self::failed_but(self.what(), next)
            }
            _ => self,
        }
    }

    /// The same, with the fields of a document called as they are: no flag of the command line set them.
    pub(crate) fn of_document(mut self) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.problem.is_of_document = true;
        }
        self
    }

    /// Whether the server found fault with this field of the request.
    pub(crate) fn is_about(&self, field: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.problem.is_about(field))
    }

    /// The status of the server's answer, if there was one.
    pub(crate) fn status(&self) -> Option<u16> {
        if let Self::Refused(refusal) = self { Some(refusal.status) } else { None }
    }

    /// Whether the same call may succeed a little later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
            || self.status().is_some_and(|status| status == 429 || status >= 500)
    }

    /// What went wrong, in one line.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Usage(what) | Self::Failed { what, .. } => what.clone(),
            Self::SignedOut { server } => format!("not signed in to {server}"),
            Self::Unreachable { server, why } => format!("can't reach {server}: {why}"),
            Self::Refused(refusal) => refusal.problem.sentence(),
            Self::OutputClosed => "the output was closed".into(),
        }
    }

    /// What to do about it, in one line.
    pub(crate) fn next(&self) -> Option<String> {
        match self {
            Self::Usage(_) | Self::OutputClosed => None,
            Self::Failed { next, .. } => next.clone(),
            Self::SignedOut { .. } => Some(r#"run "paddock login""#.into()),
            Self::Unreachable { .. } => Some(
                r#"start a server with "paddock server", or name another one with --server"#.into(),
            ),
            Self::Refused(refusal) => refusal.next(),
        }
    }

    /// Says it on stderr.
    pub(crate) fn report(&self) {
        if matches!(self, Self::OutputClosed) {
            return;
        }
        eprintln!("error: {}", table::clean_lines(&self.what()));
        if let Some(next) = self.next() {
            eprintln!("hint: {}", table::clean(&next));
        }
    }

    /// The exit code that `--help` promises.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::OutputClosed => ExitCode::SUCCESS,
            Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl Refusal {
    fn next(&self) -> Option<String> {
        match self.status {
            401 if self.with_token => Some(r#"sign in again: run "paddock login""#.into()),
            429 | 503 => Some(match &self.retry_after {
                Some(time) if time.bytes().all(|b| b.is_ascii_digit()) => {
                    format!("try again in {time} s")
                }
                Some(date) => format!("try again after {date}"),
                None => "try again a little later".into(),
            }),
            status if status >= 500 => self
                .problem
                .request_id
                .as_ref()
                .map(|id| format!("the server's log says more under request id {id}")),
            _ => self.problem.fields().find_map(hint::of_field),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, retry_after: Option<&str>, with_token: bool) -> Error {
        let mut problem = Problem::default();
        problem.request_id = Some("r1".into());
        let retry_after = retry_after.map(Into::into);
        Error::Refused(Box::new(Refusal { status, problem, retry_after, with_token }))
    }

    #[test]
    fn the_next_step_fits_the_refusal() {
        let login = r#"sign in again: run "paddock login""#;
        for (error, next) in [
            (refused(401, None, true), Some(login)),
            (refused(401, None, false), None),
            (refused(404, None, true), None),
            (refused(429, Some("12"), true), Some("try again in 12 s")),
            (refused(429, None, true), Some("try again a little later")),
            (
                refused(503, Some("Wed, 21 Oct 2026 07:28:00 GMT"), true),
                Some("try again after Wed, 21 Oct 2026 07:28:00 GMT"),
            ),
            (refused(500, None, true), Some("the server's log says more under request id r1")),
        ] {
            assert_eq!(error.next().as_deref(), next, "{error:?}");
        }
    }

    #[test]
    fn a_way_on_is_added_where_there_is_none() {
        for (error, next) in [
            (refused(404, None, true), "look there"),
            (refused(429, Some("12"), true), "try again in 12 s"),
            (Error::failed("no"), "look there"),
            (Error::failed_but("no", "look here"), "look here"),
            (Error::SignedOut { server: "s".into() }, r#"run "paddock login""#),
        ] {
            let what = error.what();
            let error = error.or_next("look there");
            assert_eq!(error.next().as_deref(), Some(next), "{error:?}");
            assert_eq!(error.what(), what);
        }
    }

    #[test]
    fn only_what_passes_is_worth_another_try() {
        for (error, passing) in [
            (refused(429, None, true), true),
            (refused(503, None, true), true),
            (refused(404, None, true), false),
            (Error::Unreachable { server: "s".into(), why: "w".into() }, true),
            (Error::SignedOut { server: "s".into() }, false),
        ] {
            assert_eq!(error.is_passing(), passing, "{error:?}");
        }
    }
}
