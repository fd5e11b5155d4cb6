//! Foreign systems behind the engine's traits, one folder each.
//!
//! Nothing here may know the store or the HTTP shapes of our own API. Only the [`guard`] repeats a call
//! that failed, and keeps everybody from asking what is down.

mod call;
pub mod calls;
pub mod consul;
pub mod dns;
pub mod guard;
mod http;
pub mod kubernetes;
pub mod oidc;
mod places;
pub mod probe;
pub mod prometheus;
pub mod seal;
pub mod sso;
pub mod terraform;
pub mod vault;
pub mod web;

pub use call::{LIMIT, Unusable};
