//! What engines complain about, as sentences that a user can act on.

use bollard::errors::Error as EngineError;
use runtime::Error as Cause;

use super::{Docker, Engine};
use crate::Error;

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
    pub(super) fn not_started(&self, error: &EngineError, command: Option<&str>) -> Error {
        let said = innermost(error);
        let says = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
        let command = command.unwrap_or("of the image");
        if says(&["executable file not found", "no such file or directory"]) {
            let why = format!("The command {command} does not exist in the image.");
            return Cause::BadCommand(why).into();
        }
        if says(&["permission denied", "is a directory"]) {
            let why =
                format!("The command {command} can't be run: it is not executable in the image.");
            return Cause::BadCommand(why).into();
        }
        if says(&["already allocated", "address already in use"]) {
            let why = format!("A port that it shall be published on is in use: {said}.");
            return Error::Conflict(why);
        }
        Error::Failed(format!("{} could not start the container: {said}.", self.engine.as_str()))
    }
}

/// An image that did not come: why, by what the engine said.
pub(super) fn not_pulled(engine: Engine, image: &str, registry: &str, said: &str) -> Error {
    let says = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
    let owned = || (image.to_owned(), registry.to_owned());
    let name = engine.as_str();
    if says(&["unauthorized", "authentication required", "no basic auth", "denied"]) {
        let (image, registry) = owned();
        return Cause::Unauthorised { image, registry }.into();
    }
    if says(&["manifest unknown", "not found", "does not exist", "404"]) {
        let (image, registry) = owned();
        return Cause::ImageNotFound { image, registry }.into();
    }
    if says(&["HTTP response to HTTPS client", "first record does not look like a TLS"]) {
        return Error::Unavailable(format!(
            "The registry {registry} speaks http, which {name} allows only where it is told to: set \
             it as insecure in {}.",
            match engine {
                Engine::Docker => "/etc/docker/daemon.json (insecure-registries)",
                Engine::Podman => "/etc/containers/registries.conf",
            }
        ));
    }
    let (bad, unavailable) = (Cause::BadImage, Cause::RegistryUnavailable);
    let (kind, why): (fn(String) -> Cause, String) = if says(&[
        "no matching manifest",
        "no image found in manifest list",
        "no image found in image",
    ]) {
        (bad, format!("The image {image} has no variant for this machine ({said})."))
    } else if says(&["connection refused", "no such host", "no route to host", "unreachable"]) {
        let hint = "check its name, and that it runs";
        (unavailable, format!("The registry {registry} can't be reached ({said}): {hint}."))
    } else if says(&["timeout", "deadline exceeded", "Timeout"]) {
        (unavailable, format!("The registry {registry} did not answer in time ({said})."))
    } else if says(&["invalid character", "unexpected end of JSON"]) {
        let what = "with something that makes no sense";
        (bad, format!("The registry {registry} answers {image} {what}: {said}."))
    } else if says(&["verification failed", "does not match", "did not match"]) {
        (bad, format!("The image {image} is not what it says it is ({said})."))
    } else {
        return Error::Failed(format!("{name} could not pull the image {image}: {said}."));
    };
    kind(why).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_engines_say_of_images() {
        for (said, expected) in [
            (
                "manifest for x/y:1 not found: manifest unknown: manifest unknown",
                "does not exist in",
            ),
            ("Head \"http://x/v2/\": no basic auth credentials", "set credentials for x"),
            (
                "Get \"https://x/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
                "be reached",
            ),
            ("http: server gave HTTP response to HTTPS client", "registries.conf"),
            ("filesystem layer verification failed for digest sha256:00", "is not what it says"),
            ("writing blob: Digest did not match, expected sha256:00", "is not what it says"),
            ("invalid character '<' looking for beginning of value", "makes no sense"),
            ("context deadline exceeded", "did not answer in time"),
            ("something new", "Podman could not pull the image x/y:1: something new."),
        ] {
            let why = not_pulled(Engine::Podman, "x/y:1", "x", said).to_string();
            assert!(why.contains(expected) && why.ends_with('.'), "{why}");
        }
    }
}
