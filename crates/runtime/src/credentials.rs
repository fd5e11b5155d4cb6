//! Credentials of image registries.

use std::fmt;

/// Credentials of an image registry.
#[derive(Clone)]
pub struct Credentials {
    /// The user.
    pub username: String,
    /// The password, or a token used as one.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({}, •••)", self.username)
    }
}
