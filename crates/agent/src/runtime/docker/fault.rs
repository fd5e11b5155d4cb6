//! Converts errors of engines into reasons.

use bollard::errors::Error as EngineError;
use model::deployment::{Pull, Reason};

use super::{Docker, Engine};
use crate::{Error, reason};

/// Whether the object does not exist.
pub(super) fn is_missing(error: &EngineError) -> bool {
    matches!(error, EngineError::DockerResponseServerError { status_code: 404, .. })
}

/// The engine's message or the innermost cause: one line, without a full stop.
pub(super) fn innermost(error: &EngineError) -> String {
    let text = match error {
        EngineError::DockerResponseServerError { message, .. } => message.clone(),
        EngineError::DockerStreamError { error } => error.clone(),
        error => {
            let mut last: &dyn std::error::Error = error;
            while let Some(next) = last.source() {
                last = next;
            }
            last.to_string()
        }
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let brief: String = line.chars().take(300).collect();
    brief.trim_end_matches('.').to_owned()
}

impl Docker {
    /// An operation of the engine failed.
    pub(super) fn failed(&self, what: &str, error: &EngineError) -> Error {
        Error::Failed(format!("{} {what}: {}.", self.engine.as_str(), innermost(error)))
    }

    /// Converts a failure to start a container.
    pub(super) fn not_started(&self, error: &EngineError, command: Option<&str>) -> Reason {
        let message = innermost(error);
        let has = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        let command = command.unwrap_or("its default command").to_owned();
        if has(&["executable file not found", "no such file or directory"]) {
            return Reason::CommandNotFound { command };
        }
        if has(&["permission denied", "is a directory"]) {
            return Reason::CommandNotExecutable { command };
        }
        if has(&["already allocated", "address already in use"]) {
            return Reason::PortUnavailable { message };
        }
        Reason::StartFailed { message: format!("{}: {message}", self.engine.as_str()) }
    }

    /// Converts a failed pull, by the engine's message.
    pub(super) fn not_pulled(&self, image: &str, registry: &str, message: String) -> Reason {
        let cause = reason::pull_cause(&message);
        let is_plain = reason::PLAIN_HTTP.iter().any(|text| message.contains(text));
        let message = match self.engine {
            _ if cause != Pull::Other || !is_plain => message,
            Engine::Docker => format!(
                "registry {registry} uses plain HTTP. Add it to \
                 /etc/docker/daemon.json as an insecure registry"
            ),
            Engine::Podman => format!(
                "registry {registry} uses plain HTTP. Add it to \
                 /etc/containers/registries.conf as an insecure registry"
            ),
        };
        reason::not_pulled(image, cause, message)
    }
}
