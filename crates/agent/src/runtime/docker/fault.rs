//! What engines complain about, as reasons.

use bollard::errors::Error as EngineError;
use model::deployment::{Pull, Reason};

use super::{Docker, Engine};
use crate::{Error, reason};

/// Is it that there is no such thing?
pub(super) fn is_missing(error: &EngineError) -> bool {
    matches!(error, EngineError::DockerResponseServerError { status_code: 404, .. })
}

/// What the engine said, or what kept it from saying something: one line, without its full stop.
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
    /// The engine could not do something.
    pub(super) fn failed(&self, what: &str, error: &EngineError) -> Error {
        Error::Failed(format!("{} {what}: {}.", self.engine.as_str(), innermost(error)))
    }

    /// A container could not be started.
    pub(super) fn not_started(&self, error: &EngineError, command: Option<&str>) -> Reason {
        let said = innermost(error);
        let says = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
        let command = command.unwrap_or("of the image").to_owned();
        if says(&["executable file not found", "no such file or directory"]) {
            return Reason::CommandNotFound { command };
        }
        if says(&["permission denied", "is a directory"]) {
            return Reason::CommandNotExecutable { command };
        }
        if says(&["already allocated", "address already in use"]) {
            return Reason::PortUnavailable { message: said };
        }
        Reason::StartFailed { message: format!("{}: {said}", self.engine.as_str()) }
    }

    /// An image did not come: why, by what the engine said.
    pub(super) fn not_pulled(&self, image: &str, registry: &str, said: String) -> Reason {
        let cause = reason::pull_cause(&said);
        let is_plain = reason::PLAIN_HTTP.iter().any(|text| said.contains(text));
        let message = match self.engine {
            _ if cause != Pull::Unreachable || !is_plain => said,
            Engine::Docker => format!(
                "the registry {registry} speaks http: set it as insecure in \
                 /etc/docker/daemon.json (insecure-registries)"
            ),
            Engine::Podman => format!(
                "the registry {registry} speaks http: set it as insecure in \
                 /etc/containers/registries.conf"
            ),
        };
        reason::not_pulled(image, cause, message)
    }
}
