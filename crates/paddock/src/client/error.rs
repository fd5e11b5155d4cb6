//! Client errors: message, hint and exit code.

use std::process::ExitCode;

use super::hint;
use super::problem::Problem;
use super::table;

/// Error of a command.
#[derive(Debug)]
pub(crate) enum Error {
    /// Invalid command line.
    Usage(String),
    /// No token for this server.
    NotLoggedIn { server: String },
    /// The server does not respond.
    Unreachable { server: String, why: String },
    /// The server rejected the request.
    Refused(Box<Refusal>),
    /// Any other error.
    Failed { message: String, hint: Option<String> },
    /// The reader of stdout has exited (`paddock events | head`); not a failure.
    OutputClosed,
}

/// An error response of the server.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) problem: Problem,
    /// The `Retry-After` header: seconds, or a date.
    pub(crate) retry_after: Option<String>,
    /// Whether the request carried a token.
    pub(crate) with_token: bool,
}

impl Error {
    /// An error without a hint.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: None }
    }

    /// An error with a hint.
    pub(crate) fn failed_with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: Some(hint.into()) }
    }

    /// Adds a hint unless the error already has one.
    pub(crate) fn or_hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Refused(_) | Self::Failed { .. } if self.hint().is_none() => {
                Self::failed_with_hint(self.message(), hint)
            }
            _ => self,
        }
    }

    /// Reports field names unchanged: they come from a document, not from command-line flags.
    pub(crate) fn in_document(mut self) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.problem.is_in_document = true;
        }
        self
    }

    /// Whether the server rejected this field of the request.
    pub(crate) fn is_about(&self, field: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.problem.is_about(field))
    }

    /// HTTP status of the response, if any.
    pub(crate) fn status(&self) -> Option<u16> {
        if let Self::Refused(refusal) = self { Some(refusal.status) } else { None }
    }

    /// Whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
            || self.status().is_some_and(|status| status == 429 || status >= 500)
    }

    /// Error message on one line.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Usage(message) | Self::Failed { message, .. } => message.clone(),
            Self::NotLoggedIn { server } => format!("not logged in to {server}"),
            Self::Unreachable { server, why } => format!("cannot reach {server}: {why}"),
            Self::Refused(refusal) => refusal.problem.message(),
            Self::OutputClosed => "output closed".into(),
        }
    }

    /// What to do next, on one line.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage(_) | Self::OutputClosed => None,
            Self::Failed { hint, .. } => hint.clone(),
            Self::NotLoggedIn { .. } => Some(r#"run "paddock login""#.into()),
            Self::Unreachable { .. } => Some(
                r#"start a server with "paddock server", or select another one with --server"#
                    .into(),
            ),
            Self::Refused(refusal) => refusal.hint(),
        }
    }

    /// Prints message and hint to stderr.
    pub(crate) fn report(&self) {
        if matches!(self, Self::OutputClosed) {
            return;
        }
        eprintln!("error: {}", table::clean_lines(&self.message()));
        if let Some(hint) = self.hint() {
            eprintln!("hint: {}", table::clean(&hint));
        }
    }

    /// Exit code as documented in `--help`.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::OutputClosed => ExitCode::SUCCESS,
            Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl Refusal {
    fn hint(&self) -> Option<String> {
        match self.status {
            401 if self.with_token => Some(r#"run "paddock login""#.into()),
            429 | 503 => Some(match &self.retry_after {
                Some(time) if time.bytes().all(|b| b.is_ascii_digit()) => {
                    format!("retry in {time} s")
                }
                Some(date) => format!("retry after {date}"),
                None => "retry later".into(),
            }),
            status if status >= 500 => self
                .problem
                .request_id
                .as_ref()
                .map(|id| format!("see the server's log for request id {id}")),
            _ if self.problem.quota.is_some() => Some(hint::QUOTA.into()),
            _ => self.problem.fields().find_map(hint::for_field),
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
    fn hint_depends_on_status() {
        let login = r#"run "paddock login""#;
        for (error, hint) in [
            (refused(401, None, true), Some(login)),
            (refused(401, None, false), None),
            (refused(404, None, true), None),
            (refused(429, Some("12"), true), Some("retry in 12 s")),
            (refused(429, None, true), Some("retry later")),
            (
                refused(503, Some("Wed, 21 Oct 2026 07:28:00 GMT"), true),
                Some("retry after Wed, 21 Oct 2026 07:28:00 GMT"),
            ),
            (refused(500, None, true), Some("see the server's log for request id r1")),
        ] {
            assert_eq!(error.hint().as_deref(), hint, "{error:?}");
        }
    }

    #[test]
    fn hint_is_added_only_if_missing() {
        for (error, hint) in [
            (refused(404, None, true), "added"),
            (refused(429, Some("12"), true), "retry in 12 s"),
            (Error::failed("no"), "added"),
            (Error::failed_with_hint("no", "own"), "own"),
            (Error::NotLoggedIn { server: "s".into() }, r#"run "paddock login""#),
        ] {
            let message = error.message();
            let error = error.or_hint("added");
            assert_eq!(error.hint().as_deref(), Some(hint), "{error:?}");
            assert_eq!(error.message(), message);
        }
    }

    #[test]
    fn only_overload_and_server_errors_are_transient() {
        for (error, transient) in [
            (refused(429, None, true), true),
            (refused(503, None, true), true),
            (refused(404, None, true), false),
            (Error::Unreachable { server: "s".into(), why: "w".into() }, true),
            (Error::NotLoggedIn { server: "s".into() }, false),
        ] {
            assert_eq!(error.is_transient(), transient, "{error:?}");
        }
    }
}
