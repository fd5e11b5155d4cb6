//! How registries let us in.

use std::fmt;

/// A user of a registry.
#[derive(Clone)]
pub struct Credentials {
    /// The user.
    pub username: String,
    /// The password, or a token that is used like one.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({}, •••)", self.username)
    }
}
