//! The request and response shapes of `/api/v1`: one definition each, for the server that writes them
//! and for clients that read them.
//!
//! A shape is plain data with serde and an OpenAPI schema. This crate knows `model`, and neither HTTP
//! nor the store.
//!
//! Answers are read leniently: unknown fields are ignored, statuses and other words that may grow are
//! text, and a field that is added to an answer later must be optional, so that a client also
//! understands a server that is older or newer. Request bodies refuse unknown fields.

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
