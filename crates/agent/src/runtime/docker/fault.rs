//! What engines complain about, as sentences that a user can act on.

use bollard::errors::Error;

use super::{Docker, Engine};

/// Is it that there is no such thing?
pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// What the engine said, or what kept it from saying something: one line, without its full stop.
pub(super) fn innermost(error: &Error) -> String {
    let text = match error {
        Error::DockerResponseServerError { message, .. } => message.clone(),
        Error::DockerStreamError { error } => error.clone(),
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
    pub(super) fn failed(&self, what: &str, error: &Error) -> String {
        format!("{} {what}: {}.", self.engine.as_str(), innermost(error))
    }

    /// A container could not be started.
    pub(super) fn not_started(&self, error: &Error, command: Option<&str>) -> String {
        let said = innermost(error);
        let command = command.unwrap_or("of the image");
        if ["executable file not found", "no such file or directory"]
            .iter()
            .any(|t| said.contains(t))
        {
            return format!("The command {command} does not exist in the image.");
        }
        if said.contains("permission denied") || said.contains("is a directory") {
            return format!(
                "The command {command} can't be run: it is not executable in the image."
            );
        }
        if ["already allocated", "address already in use"].iter().any(|t| said.contains(t)) {
            return format!("A port that it shall be published on is in use: {said}.");
        }
        format!("{} could not start the container: {said}.", self.engine.as_str())
    }
}

/// An image that did not come: why, by what the engine said.
pub(super) fn not_pulled(engine: Engine, image: &str, registry: &str, said: &str) -> String {
    let says = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
    let name = engine.as_str();
    if says(&["unauthorized", "authentication required", "no basic auth", "denied"]) {
        return format!(
            "The registry {registry} does not let us have {image}: set credentials for {registry}, \
             or check the ones that are set."
        );
    }
    if says(&["manifest unknown", "not found", "does not exist", "404"]) {
        return format!(
            "The image {image} does not exist in the registry {registry}: check its name and tag."
        );
    }
    if says(&["HTTP response to HTTPS client", "first record does not look like a TLS"]) {
        return format!(
            "The registry {registry} speaks http, which {name} allows only where it is told to: set \
             it as insecure in {}.",
            match engine {
                Engine::Docker => "/etc/docker/daemon.json (insecure-registries)",
                Engine::Podman => "/etc/containers/registries.conf",
            }
        );
    }
    if says(&["no matching manifest", "no image found in manifest list", "no image found in image"])
    {
        return format!("The image {image} has no variant for this machine ({said}).");
    }
    if says(&["connection refused", "no such host", "no route to host", "unreachable"]) {
        return format!(
            "The registry {registry} can't be reached ({said}): check its name, and that it runs."
        );
    }
    if says(&["timeout", "deadline exceeded", "Timeout"]) {
        return format!("The registry {registry} did not answer in time ({said}).");
    }
    if says(&["invalid character", "unexpected end of JSON"]) {
        return format!(
            "The registry {registry} answers {image} with something that makes no sense: {said}."
        );
    }
    if says(&["verification failed", "does not match", "did not match"]) {
        return format!("The image {image} is not what it says it is ({said}).");
    }
    format!("{name} could not pull the image {image}: {said}.")
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
            let why = not_pulled(Engine::Podman, "x/y:1", "x", said);
            assert!(why.contains(expected) && why.ends_with('.'), "{why}");
        }
    }
}
