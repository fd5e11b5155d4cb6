//! Why a runtime could not do what it was asked for.

use model::deployment::Reason;

/// Why a runtime could not do what it was asked for. A variant is what a caller can do differently;
/// `Display` is a message for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The replica is at fault, with any runtime.
    #[error("{0}")]
    Replica(#[from] Reason),
    /// The spec has no image. The agent does not ask for that.
    #[error("There is no image to run.")]
    NoImage,
    /// This runtime can't run the spec. Change the spec.
    #[error("{0}")]
    InvalidSpec(String),
    /// Something of the same name belongs to somebody else. Remove it, or choose another name.
    #[error("{0}")]
    Conflict(String),
    /// No runtime, engine or apiserver can be used. Install, start or configure one.
    #[error("{0}")]
    Unavailable(String),
    /// The engine or the apiserver failed, or refused. Retry later.
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
