//! Foreign systems behind the engine's traits, one folder each.
//!
//! Nothing here may know the store or the HTTP shapes of our own API. Nothing here repeats a call
//! that failed: the workers do, and a guard around these keeps them from asking what is down.

mod call;
pub mod oidc;
pub mod seal;
pub mod sso;

pub use call::{LIMIT, Unusable};
