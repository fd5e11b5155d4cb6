//! Converts failures and exits of containers into reasons: the same for every runtime.

use std::time::Duration;

use model::deployment::{Pull, Reason};
use model::image::StoreError;
use runtime::{Error, message};

/// Converts a failure to start a container.
pub(crate) fn not_started(error: Error, image: &str) -> Reason {
    let pull = |cause, message| not_pulled(image, cause, message);
    match error {
        Error::InvalidImageName { cause, .. } => pull(Pull::InvalidName, cause),
        Error::ImageNotFound { registry, .. } => {
            pull(Pull::NotFound, format!("not found in registry {registry}"))
        }
        Error::ImageNotLoaded { .. } => pull(Pull::NotLoaded, NOT_LOADED.to_owned()),
        Error::Unauthorised { registry, .. } => {
            pull(Pull::Unauthorized, format!("registry {registry} denied access"))
        }
        Error::RegistryUnavailable(message) => pull(Pull::Unreachable, message),
        Error::RegistryTimedOut(message) => pull(Pull::TimedOut, message),
        Error::RegistryRefused(message) => pull(Pull::Other, message),
        Error::BadImage(message) => pull(Pull::Corrupt, message),
        Error::ImageTooLarge(message) => pull(Pull::TooLarge, message),
        Error::WrongPlatform(message) => pull(Pull::NoMatchingPlatform, message),
        Error::CommandNotFound { command, .. } => Reason::CommandNotFound { command },
        Error::CommandNotExecutable { command, .. } => Reason::CommandNotExecutable { command },
        Error::PortNotOpened(message) => Reason::PortUnavailable { message },
        error => Reason::StartFailed { message: error.to_string() },
    }
}

/// Why a local image can't be started.
pub(crate) const NOT_LOADED: &str = "not on this machine";

/// Converts a failed operation on the image store.
pub(crate) fn not_loaded(error: Error) -> StoreError {
    let message = error.to_string();
    match error {
        Error::InvalidImageName { .. } | Error::InvalidArchive(_) => StoreError::Invalid(message),
        Error::ImageTooLarge(why) => {
            StoreError::TooLarge(format!("Image archive rejected: {why}."))
        }
        Error::ImageNotLoaded { .. } => StoreError::NotFound(message),
        Error::ImageInUse { .. } => StoreError::InUse(message),
        _ => StoreError::Failed(message),
    }
}

/// An image pull failed and is not retried.
pub(crate) fn not_pulled(image: &str, cause: Pull, message: String) -> Reason {
    Reason::ImagePullFailed { image: image.to_owned(), cause, message, is_retried: false }
}

/// Derives the cause of a failed pull from the message of an engine or a kubelet.
pub(crate) fn pull_cause(message: &str) -> Pull {
    let causes: [(Pull, &[&str]); 7] = [
        (
            Pull::Unauthorized,
            &["unauthorized", "authentication required", "no basic auth", "denied"],
        ),
        (Pull::NotFound, &["manifest unknown", "not found", "does not exist", "404"]),
        (Pull::Other, &PLAIN_HTTP),
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
    let matches = |(_, texts): &&(Pull, &[&str])| texts.iter().any(|text| message.contains(text));
    causes.iter().find(matches).map_or(Pull::Other, |(cause, _)| *cause)
}

/// Messages of engines about a registry without TLS.
pub(crate) const PLAIN_HTTP: [&str; 2] =
    ["HTTP response to HTTPS client", "first record does not look like a TLS"];

/// Converts an exit: exit code, whether a process was OOM-killed, and the memory limit.
pub(crate) fn exited(exit_code: Option<i32>, is_oom: bool, ram_bytes: Option<i64>) -> Reason {
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

/// A container restarts after a backoff.
pub(crate) fn restarting(last: Reason, pause: Duration, restarts: u32) -> Reason {
    Reason::CrashLoopBackOff {
        last: Box::new(last),
        retry_in_ms: Some(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)),
        restarts: Some(restarts),
    }
}

#[cfg(test)]
mod tests {
    use model::reason::StatusReason as _;

    use super::*;

    #[test]
    fn exits_have_codes_signals_and_limits() {
        let expected_exit = |exit_code, signal: Option<&str>, oom_limit_bytes| Reason::Exited {
            exit_code: Some(exit_code),
            signal: signal.map(str::to_owned),
            oom_limit_bytes,
        };
        let ram = Some(32 << 20);
        for (code, is_oom, ram_bytes, expected) in [
            (0, false, None, expected_exit(0, None, None)),
            (0, true, ram, expected_exit(0, None, None)),
            (3, false, ram, expected_exit(3, None, None)),
            (3, true, ram, expected_exit(3, None, ram)),
            (139, false, None, expected_exit(139, Some("11 (SIGSEGV)"), None)),
            (137, false, None, expected_exit(137, Some("9 (SIGKILL)"), None)),
            (137, true, None, Reason::OOMKilled { limit_bytes: None }),
            (137, true, ram, Reason::OOMKilled { limit_bytes: ram }),
        ] {
            assert_eq!(exited(Some(code), is_oom, ram_bytes), expected);
        }
        let again = restarting(exited(Some(3), false, None), Duration::from_secs(4), 3);
        assert_eq!(again.code(), "Exited");
        assert_eq!(again.to_string(), "Exited with code 3. Restarting in 4 s (restart 3).");
    }

    #[test]
    fn failed_start_gives_advice_once() {
        let port = Error::PortNotOpened("address already in use".into());
        let firewall = Error::NotIsolated("nft not found; iptables-restore not found".into());
        let pull = Error::RegistryUnavailable("registry x is unreachable: refused".into());
        for (error, expected) in [
            (
                port,
                "Publishing a port failed: address already in use. Free the port or change `ports`.",
            ),
            (
                firewall,
                "Container start failed: Containers can't be isolated from the host's network: nft \
                 not found; iptables-restore not found. Install nftables or iptables and retry.",
            ),
            (
                pull,
                "Image pull failed: x/web:1: registry x is unreachable: refused. Check the \
                 registry's name and that it is up.",
            ),
        ] {
            assert_eq!(not_started(error, "x/web:1").to_string(), expected);
        }
    }

    #[test]
    fn pull_failures_have_causes() {
        for (message, expected) in [
            ("manifest for x/y:1 not found: manifest unknown: manifest unknown", Pull::NotFound),
            ("Head \"http://x/v2/\": no basic auth credentials", Pull::Unauthorized),
            (
                "Get \"https://x/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
                Pull::Unreachable,
            ),
            ("http: server gave HTTP response to HTTPS client", Pull::Other),
            ("filesystem layer verification failed for digest sha256:00", Pull::Corrupt),
            ("writing blob: Digest did not match, expected sha256:00", Pull::Corrupt),
            ("invalid character '<' looking for beginning of value", Pull::Corrupt),
            ("context deadline exceeded", Pull::TimedOut),
            ("something new", Pull::Other),
        ] {
            assert_eq!(pull_cause(message), expected, "{message}");
        }
    }
}
