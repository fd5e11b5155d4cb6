//! What happens to containers, as reasons of deployments: the same for every runtime.

use std::time::Duration;

use model::deployment::{Pull, Reason};
use runtime::{Error, message};

/// A container could not be started by the embedded runtime, or not as it was asked for.
pub(crate) fn not_started(error: Error, image: &str) -> Reason {
    let pull = |cause, message| not_pulled(image, cause, message);
    match error {
        Error::InvalidImageName { cause, .. } => pull(Pull::InvalidName, cause),
        Error::ImageNotFound { registry, .. } => {
            pull(Pull::NotFound, format!("not found in the registry {registry}"))
        }
        Error::Unauthorised { registry, .. } => {
            pull(Pull::Unauthorized, format!("the registry {registry} denies access"))
        }
        Error::RegistryUnavailable(message) => pull(Pull::Unreachable, message),
        Error::RegistryTimedOut(message) => pull(Pull::TimedOut, message),
        Error::BadImage(message) => pull(Pull::Corrupt, message),
        Error::ImageTooLarge(message) => pull(Pull::TooLarge, message),
        Error::WrongPlatform(message) => pull(Pull::NoMatchingPlatform, message),
        Error::CommandNotFound { command, .. } => Reason::CommandNotFound { command },
        Error::CommandNotExecutable { command, .. } => Reason::CommandNotExecutable { command },
        error @ (Error::PortInUse { .. } | Error::PortNotOpened(_)) => {
            Reason::PortUnavailable { message: error.to_string() }
        }
        error => Reason::StartFailed { message: error.to_string() },
    }
}

/// An image could not be pulled, and is not pulled again.
pub(crate) fn not_pulled(image: &str, cause: Pull, message: String) -> Reason {
    Reason::ImagePullFailed { image: image.to_owned(), cause, message, is_retried: false }
}

/// What kept an image from being pulled, by what an engine or a kubelet said.
pub(crate) fn pull_cause(said: &str) -> Pull {
    let causes: [(Pull, &[&str]); 7] = [
        (
            Pull::Unauthorized,
            &["unauthorized", "authentication required", "no basic auth", "denied"],
        ),
        (Pull::NotFound, &["manifest unknown", "not found", "does not exist", "404"]),
        (Pull::Unreachable, &PLAIN_HTTP),
        (
            Pull::NoMatchingPlatform,
            &["no matching manifest", "no image found in manifest list", "no image found in image"],
        ),
        (
            Pull::Unreachable,
            &["connection refused", "no such host", "no route to host", "unreachable"],
        ),
        (Pull::TimedOut, &["timeout", "deadline exceeded", "Timeout"]),
        (
            Pull::Corrupt,
            &[
                "invalid character",
                "unexpected end of JSON",
                "verification failed",
                "does not match",
                "did not match",
            ],
        ),
    ];
    let fits = |(_, texts): &&(Pull, &[&str])| texts.iter().any(|text| said.contains(text));
    causes.iter().find(fits).map_or(Pull::Other, |(cause, _)| *cause)
}

/// What an engine says of a registry without TLS.
pub(crate) const PLAIN_HTTP: [&str; 2] =
    ["HTTP response to HTTPS client", "first record does not look like a TLS"];

/// A program ended: by its code, and by whether something of it was killed for lack of memory, with
/// how much it had.
pub(crate) fn ended(exit_code: Option<i32>, is_oom: bool, ram_bytes: Option<i64>) -> Reason {
    if is_oom && exit_code == Some(137) {
        return Reason::OOMKilled { limit_bytes: ram_bytes };
    }
    let signal = exit_code.filter(|code| (129..=159).contains(code));
    Reason::Exited {
        exit_code,
        signal: signal.map(|code| message::signal(code - 128)),
        oom_limit_bytes: ram_bytes.filter(|_| is_oom && exit_code != Some(0)),
    }
}

/// A container is started again after a pause.
pub(crate) fn restarting(last: Reason, pause: Duration, restarts: u32) -> Reason {
    Reason::CrashLoopBackOff {
        last: Box::new(last),
        retry_in_ms: Some(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)),
        restarts: Some(restarts),
    }
}

#[cfg(test)]
mod tests {
    use model::reason::Coded as _;

    use super::*;

    #[test]
    fn endings_have_codes_signals_and_limits() {
        let exited = |exit_code, signal: Option<&str>, oom_limit_bytes| Reason::Exited {
            exit_code: Some(exit_code),
            signal: signal.map(str::to_owned),
            oom_limit_bytes,
        };
        let ram = Some(32 << 20);
        for (code, is_oom, ram_bytes, expected) in [
            (0, false, None, exited(0, None, None)),
            (0, true, ram, exited(0, None, None)),
            (3, false, ram, exited(3, None, None)),
            (3, true, ram, exited(3, None, ram)),
            (139, false, None, exited(139, Some("11 (SIGSEGV)"), None)),
            (137, false, None, exited(137, Some("9 (SIGKILL)"), None)),
            (137, true, None, Reason::OOMKilled { limit_bytes: None }),
            (137, true, ram, Reason::OOMKilled { limit_bytes: ram }),
        ] {
            assert_eq!(ended(Some(code), is_oom, ram_bytes), expected);
        }
        let again = restarting(ended(Some(3), false, None), Duration::from_secs(4), 3);
        assert_eq!(again.code(), "Exited");
        assert_eq!(again.to_string(), "Exited with code 3. Restarting in 4 s (restart 3).");
    }

    #[test]
    fn pull_failures_have_causes() {
        for (said, expected) in [
            ("manifest for x/y:1 not found: manifest unknown: manifest unknown", Pull::NotFound),
            ("Head \"http://x/v2/\": no basic auth credentials", Pull::Unauthorized),
            (
                "Get \"https://x/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
                Pull::Unreachable,
            ),
            ("http: server gave HTTP response to HTTPS client", Pull::Unreachable),
            ("filesystem layer verification failed for digest sha256:00", Pull::Corrupt),
            ("writing blob: Digest did not match, expected sha256:00", Pull::Corrupt),
            ("invalid character '<' looking for beginning of value", Pull::Corrupt),
            ("context deadline exceeded", Pull::TimedOut),
            ("something new", Pull::Other),
        ] {
            assert_eq!(pull_cause(said), expected, "{said}");
        }
    }
}
