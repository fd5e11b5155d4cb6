//! Errors of API servers, mapped to faults.

use base::resolver::refusal;
use kube::Error;
use kube::core::Status;
use port::Fault;

use super::Target;
use crate::http::root_of;

/// The maximum length of an external message, in characters.
const MAX_CHARS: usize = 600;

/// Maps an error to a fault that names the attempted action.
pub(super) trait Doing<T> {
    /// `what` completes "failed to".
    fn doing(self, target: &Target<'_>, what: &str) -> Result<T, Fault>;
}

impl<T> Doing<T> for Result<T, Error> {
    fn doing(self, target: &Target<'_>, what: &str) -> Result<T, Fault> {
        self.map_err(|error| fault(&target.task.name, target.is_renewed, what, &error))
    }
}

/// Whether the object does not exist.
pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

fn fault(cluster: &str, is_renewed: bool, what: &str, error: &Error) -> Fault {
    let name = format!("Kubernetes of cluster {cluster}");
    match error {
        Error::Api(status) => status_fault(&name, is_renewed, what, status),
        Error::SerdeError(_) | Error::FromUtf8(_) => {
            Fault::Unavailable(format!("{name} failed to {what}: invalid response"))
        }
        Error::Auth(_) => {
            Fault::Refused(format!("{name}: the kubeconfig's user cannot authenticate"))
        }
        Error::BuildRequest(_) => Fault::Refused(format!("{name}: invalid request to {what}")),
        other if let Some(why) = refusal(other) => Fault::Refused(format!("{name}: {why}")),
        other => Fault::Unavailable(format!("{name} is unreachable: {}", root_of(other))),
    }
}

fn status_fault(name: &str, is_renewed: bool, what: &str, status: &Status) -> Fault {
    let message = message(&status.message);
    let code = status.code;
    match code {
        401 if is_renewed => {
            Fault::Unavailable(format!("{name} rejected the server's service account token"))
        }
        401 => Fault::Refused(format!(
            "{name} rejected the credentials of the kubeconfig: they are wrong or expired. Set a \
             new kubeconfig"
        )),
        // The object can be created again once its deletion has finished.
        403 if status.message.contains("being terminated") => {
            Fault::Unavailable(format!("{name} failed to {what}{message}"))
        }
        403 => Fault::Refused(format!("{name} denied permission to {what}{message}")),
        400 | 405 | 413 | 415 | 422 => {
            Fault::Refused(format!("{name} refused to {what}: status {code}{message}"))
        }
        409 => Fault::Unavailable(format!("{name} failed to {what}: concurrent change{message}")),
        408 | 410 | 429 => Fault::Unavailable(format!(
            "{name} failed to {what}: overloaded, status {code}{message}"
        )),
        _ => Fault::Unavailable(format!("{name} failed to {what}: status {code}{message}")),
    }
}

/// The message of the API server as ` (message)`, as one line of limited length.
fn message(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(MAX_CHARS).collect();
    if line.is_empty() { line } else { format!(" ({line})") }
}
