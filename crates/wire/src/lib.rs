//! The request and response shapes of `/api/v1`: one definition each, for the server that writes them
//! and for clients that read them.
//!
//! A shape is plain data with serde and an OpenAPI schema. This crate knows `model`, and neither HTTP
//! nor the store.

pub mod denied_owner;
pub mod environment;
pub mod executor;
pub mod graph;
pub mod instance;
pub mod kind;
pub mod quota;
pub mod resource;
pub mod search;
pub mod template;
