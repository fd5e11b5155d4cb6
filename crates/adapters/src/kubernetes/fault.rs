//! What an apiserver says, as faults.

use kube::Error;
use kube::core::Status;
use port::Fault;

use super::Reached;
use crate::http::root_of;

/// The most characters of a foreign sentence.
const MAX_CHARS: usize = 600;

/// Makes a fault of an error, with what was about to be done.
pub(super) trait Doing<T> {
    /// `what` follows "to".
    fn doing(self, reached: &Reached<'_>, what: &str) -> Result<T, Fault>;
}

impl<T> Doing<T> for Result<T, Error> {
    fn doing(self, reached: &Reached<'_>, what: &str) -> Result<T, Fault> {
        self.map_err(|error| fault(&reached.task.name, reached.is_renewed, what, &error))
    }
}

/// Is it that there is no such thing?
pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

fn fault(cluster: &str, is_renewed: bool, what: &str, error: &Error) -> Fault {
    let name = format!("The Kubernetes of the cluster {cluster}");
    match error {
        Error::Api(status) => told(&name, is_renewed, what, status),
        Error::SerdeError(_) | Error::FromUtf8(_) => Fault::Unavailable(format!(
            "{name} gives answers that make no sense, when it was asked to {what}"
        )),
        Error::Auth(_) => Fault::Refused(format!("{name}: the kubeconfig's user can't sign in")),
        Error::BuildRequest(_) => Fault::Refused(format!("{name} can't be asked to {what}")),
        other => Fault::Unavailable(format!("{name} can't be reached: {}", root_of(other))),
    }
}

fn told(name: &str, is_renewed: bool, what: &str, status: &Status) -> Fault {
    let said = said(&status.message);
    let code = status.code;
    match code {
        401 if is_renewed => {
            Fault::Unavailable(format!("{name} does not accept the server's own token now"))
        }
        401 => Fault::Refused(format!(
            "{name} does not accept the credentials of the kubeconfig: they are wrong or have \
             expired; give the cluster a newer kubeconfig"
        )),
        // What is about to vanish can be made again after that.
        403 if status.message.contains("being terminated") => {
            Fault::Unavailable(format!("{name} can't {what} yet{said}"))
        }
        403 => Fault::Refused(format!("{name} does not allow Paddock to {what}{said}")),
        400 | 405 | 413 | 415 | 422 => {
            Fault::Refused(format!("{name} refuses to {what}: it answered {code}{said}"))
        }
        409 => {
            Fault::Unavailable(format!("{name}: somebody else changes this now, to {what}{said}"))
        }
        408 | 410 | 429 => {
            Fault::Unavailable(format!("{name} has no time to {what}: {code}{said}"))
        }
        _ => Fault::Unavailable(format!("{name} fails to {what}: it answered {code}{said}")),
    }
}

/// What it said itself, on one line and not too long.
fn said(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(MAX_CHARS).collect();
    if line.is_empty() { line } else { format!(" ({line})") }
}
