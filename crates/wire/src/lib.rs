//! The request and response shapes of `/api/v1`: one definition each, for the server that writes them
//! and for clients that read them.
//!
//! A shape is plain data with serde and an OpenAPI schema. This crate knows `model`, and neither HTTP
//! nor the store.
