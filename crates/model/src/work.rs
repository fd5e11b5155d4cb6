//! Work items: which subject wants a look, and when.

use std::fmt;

use crate::Time;

/// What a reconciler is called with. Nothing else: what changed is not an input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The reconciler's name.
    pub kind: String,
    /// The subject's id, or another name that the reconciler understands.
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

/// Who waits for it: a person, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Somebody asked and watches.
    Priority = 0,
    /// Timers, retries, the safety net.
    Background = 1,
}

/// When a reconciler wants to be called again for the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Rest,
    /// At that time, or when something changes.
    At(Time),
    /// At once, after others had their turn.
    Again,
}
