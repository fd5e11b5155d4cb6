//! What workers ask to see whether something answers.

use super::Answer;

/// Looks whether addresses answer.
pub trait Probe: Send + Sync {
    /// The status with which a GET of the address is answered. No redirect is followed.
    fn get<'a>(&'a self, url: &'a str) -> Answer<'a, u16>;
}
