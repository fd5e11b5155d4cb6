//! Foreign systems behind the engine's traits: one folder each.
//!
//! Nothing here may know the store or the HTTP shapes of our own API.

pub mod dns;
pub mod guard;
mod http;
pub mod prometheus;
