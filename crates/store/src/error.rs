//! What can go wrong with the store, by what a caller can do about it.

use model::{Invalid, Resources};

/// Why the store did not do it. In each case nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such thing, or it is somebody else's.
    #[error("there is no {kind} {id}")]
    NotFound {
        /// What was looked for.
        kind: &'static str,
        /// By which id.
        id: String,
    },
    /// It changed since the caller looked at it.
    #[error("it is at generation {now}, not {seen}")]
    Stale {
        /// What the caller saw.
        seen: i64,
        /// What it is now.
        now: i64,
    },
    /// Another one has that value already.
    #[error("{field} is taken")]
    Taken {
        /// Which field.
        field: &'static str,
    },
    /// It is not in a state in which this can be done.
    #[error("{0}")]
    Conflict(String),
    /// Too little capacity is free, or too little was taken by hand.
    #[error("{missing} missing")]
    Short {
        /// How much of what is missing.
        missing: Resources,
    },
    /// A limit is reached.
    #[error("the limit of {limit} {what} is reached")]
    Limit {
        /// The limit.
        limit: i64,
        /// Of what.
        what: &'static str,
    },
    /// The input breaks a rule that only the store can check.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The database can't be reached or is overloaded. Later may work.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The database refused a statement, or a row makes no sense. A bug, or a damaged database.
    #[error("the database failed: {0}")]
    Broken(String),
}

/// The store's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// No such thing of that kind.
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
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let text = format!("{error}: {cause}");
        match error.code() {
            // A statement that can't be: anything but overload, conflict or shutdown (classes 08,
            // 40, 53, 57), all of which pass.
            Some(code) if !["08", "40", "53", "57"].contains(&&code.code()[..2]) => {
                Self::Broken(text)
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
