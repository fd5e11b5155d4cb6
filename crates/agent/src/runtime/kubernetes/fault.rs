//! Classifies errors of the API server.

use kube::Error;
use kube::runtime::watcher;

use crate::Error as RuntimeError;

/// An error that a retry would not fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    /// Message for users.
    pub(super) message: String,
}

impl From<Refusal> for RuntimeError {
    fn from(refusal: Refusal) -> Self {
        RuntimeError::Failed(refusal.message)
    }
}

/// The refusal, unless a retry may help.
pub(super) fn refusal(what: &str, error: &Error) -> Option<Refusal> {
    if let Error::Discovery(error) = error {
        let message = format!("Kubernetes cannot {what}: {error}.");
        return Some(Refusal { code: 404, message });
    }
    let Error::Api(status) = error else { return None };
    // An object that is terminating can be created again afterwards.
    let is_terminating = status.message.contains("being terminated");
    match status.code {
        401 | 408 | 409 | 410 | 429 => None,
        403 if is_terminating => None,
        code @ 400..=499 => {
            let message = format!("Kubernetes refused to {what}: {}.", one_line(&status.message));
            Some(Refusal { code, message })
        }
        _ => None,
    }
}

/// A short description; an HTTP status comes first.
pub(super) fn brief(error: &Error) -> String {
    match error {
        Error::Api(status) => format!("{} {}", status.code, one_line(&status.message)),
        error => {
            let mut last: &dyn std::error::Error = error;
            while let Some(next) = last.source() {
                last = next;
            }
            one_line(&last.to_string())
        }
    }
}

/// Shortens text to one line without a full stop.
pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let brief: String = line.chars().take(500).collect();
    brief.trim_end_matches('.').to_owned()
}

/// How to recover a failed watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovery {
    /// The watcher retries.
    Retry,
    /// Start over with a list: the resource version is too old.
    Relist,
    /// Start over with a new token.
    Reauthenticate,
}

/// Chooses the recovery. The library relists after a 410 that arrives as an event, but repeats the
/// request forever after one that is the response.
pub(super) fn recovery(error: &watcher::Error) -> Recovery {
    let code = match error {
        watcher::Error::InitialListFailed(Error::Api(status))
        | watcher::Error::WatchStartFailed(Error::Api(status))
        | watcher::Error::WatchFailed(Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    match code {
        401 => Recovery::Reauthenticate,
        410 => Recovery::Relist,
        _ => Recovery::Retry,
    }
}
