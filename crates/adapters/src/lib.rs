//! Adapters: implementations of the ports, one folder per external system.
//!
//! Adapters must not depend on the store or on the HTTP types of Paddock's API. Only the [`guard`]
//! retries failed calls and stops calls to a system that is down.

mod call;
pub mod confined;
pub mod consul;
pub mod dns;
pub mod encryption;
pub mod guard;
mod http;
pub mod http_calls;
pub mod kubernetes;
pub mod oidc;
pub mod own;
mod places;
pub mod probe;
pub mod prometheus;
pub mod sso;
pub mod terraform;
pub mod vault;
pub mod web;

pub use call::{CALL_TIMEOUT, InvalidOptions};
