//! Errors of container runtimes.

use model::deployment::Reason;

/// An error of a container runtime. Each variant is one that a caller handles differently;
/// `Display` is a message for users.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The replica can't run, on any runtime.
    #[error("{0}")]
    Replica(#[from] Reason),
    /// The spec has no image. The agent never requests that.
    #[error("The spec has no image.")]
    NoImage,
    /// This runtime can't run the spec. Change the spec.
    #[error("{0}")]
    InvalidSpec(String),
    /// An object of the same name belongs to another owner. Remove it or choose another name.
    #[error("{0}")]
    Conflict(String),
    /// No runtime, engine or API server is available. Install, start or configure one.
    #[error("{0}")]
    Unavailable(String),
    /// The engine or API server failed or refused. Retry later.
    #[error("{0}")]
    Failed(String),
}

impl From<Error> for Reason {
    fn from(error: Error) -> Self {
        match error {
            Error::Replica(reason) => reason,
            error => Reason::StartFailed { message: error.to_string() },
        }
    }
}
