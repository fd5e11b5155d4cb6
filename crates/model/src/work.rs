//! Work items of reconcilers.

use std::fmt;

use crate::Time;

/// The only input of a reconciler; what changed is deliberately not part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The reconciler's name.
    pub kind: String,
    /// The subject's id, or another key of the reconciler.
    pub key: String,
}

impl Key {
    /// A key of one reconciler.
    pub fn new(kind: &str, key: impl fmt::Display) -> Self {
        Self { kind: kind.to_owned(), key: key.to_string() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}

/// The priority lane of a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Requested by a user.
    Priority = 0,
    /// Timers, retries and periodic resync.
    Background = 1,
}

/// When to reconcile the same key again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// On the next change.
    OnChange,
    /// At this time, or on the next change.
    At(Time),
    /// Immediately, after other queued keys.
    Now,
}
