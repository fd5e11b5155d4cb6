//! Errors of the store, by what a caller can do about them.

use model::organization::quota::Exceeded;
use model::{Invalid, Resources};

/// Why the store failed. In each case nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not exist, or belongs to another organization.
    #[error("{kind} {id} not found")]
    NotFound {
        /// The kind of subject.
        kind: &'static str,
        /// Its id or name.
        id: String,
    },
    /// It changed since the caller read it.
    #[error(
        "the object has changed since it was read: its generation is {now}, not {seen}; read it again"
    )]
    Stale {
        /// The caller's generation.
        seen: i64,
        /// The current generation.
        now: i64,
    },
    /// The value is already in use.
    #[error("{field} is already in use")]
    AlreadyExists {
        /// The field.
        field: &'static str,
    },
    /// The current state does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// Not enough capacity is free, or was manually reserved.
    #[error("insufficient capacity: {missing} missing")]
    InsufficientCapacity {
        /// The missing amounts.
        missing: Resources,
    },
    /// A limit is reached.
    #[error("the limit of {limit} {what} is reached")]
    Limit {
        /// The limit.
        limit: i64,
        /// What is limited.
        what: &'static str,
    },
    /// A quota of the organization would be exceeded.
    #[error("{0}")]
    QuotaExceeded(Box<Exceeded>),
    /// The input violates a rule that only the store can check.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The database is unreachable or overloaded. Retry later.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// The database rejected a statement, or a row is invalid. A bug, or a damaged database.
    #[error("database error: {0}")]
    Database(String),
}

/// Result of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates [`Error::NotFound`].
    pub fn not_found(kind: &'static str, id: impl std::fmt::Display) -> Self {
        Self::NotFound { kind, id: id.to_string() }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull};
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked | DiskFull | CannotOpen) => {
                Self::Unavailable(error.to_string())
            }
            _ => Self::Database(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let text = format!("{error}: {cause}");
        match error.code() {
            // Invalid statements: anything but the transient classes of overload, conflict and
            // shutdown (08, 40, 53, 57).
            Some(code) if !["08", "40", "53", "57"].contains(&&code.code()[..2]) => {
                Self::Database(text)
            }
            _ => Self::Unavailable(text),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => error.into(),
            other => Self::Unavailable(other.to_string()),
        }
    }
}
