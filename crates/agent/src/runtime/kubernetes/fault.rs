//! What apiservers complain about.

use kube::Error;
use kube::runtime::watcher;

use crate::Error as RuntimeError;

/// Something that would be no better later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    /// As a sentence.
    pub(super) text: String,
}

impl From<Refusal> for RuntimeError {
    fn from(refusal: Refusal) -> Self {
        RuntimeError::Failed(refusal.text)
    }
}

/// Why trying again would not help; nothing if it may.
pub(super) fn refusal(what: &str, error: &Error) -> Option<Refusal> {
    if let Error::Discovery(error) = error {
        let text = format!("Kubernetes can't {what}: {error}.");
        return Some(Refusal { code: 404, text });
    }
    let Error::Api(status) = error else { return None };
    // What is about to vanish can be made again after that.
    let is_passing = status.message.contains("being terminated");
    match status.code {
        401 | 408 | 409 | 410 | 429 => None,
        403 if is_passing => None,
        code @ 400..=499 => {
            let text = format!("Kubernetes refuses to {what}: {}.", one_line(&status.message));
            Some(Refusal { code, text })
        }
        _ => None,
    }
}

/// What went wrong, in a few words; a status comes first.
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

/// One line, not too long, without its full stop.
pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let brief: String = line.chars().take(500).collect();
    brief.trim_end_matches('.').to_owned()
}

/// What to do when a watch fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It goes on by itself.
    Wait,
    /// It begins anew, with a list: what it knows is too old.
    Anew,
    /// It begins anew with another token.
    Renew,
}

/// The library begins anew after a 410 that comes as an event, but not after one that comes as the
/// answer: there it would ask the same for ever.
pub(super) fn after(error: &watcher::Error) -> After {
    let code = match error {
        watcher::Error::InitialListFailed(Error::Api(status))
        | watcher::Error::WatchStartFailed(Error::Api(status))
        | watcher::Error::WatchFailed(Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    match code {
        401 => After::Renew,
        410 => After::Anew,
        _ => After::Wait,
    }
}
