//! The request and response shapes of `/api/v1`: one definition each, for the server that writes them
//! and for clients that read them.
//!
//! A shape is plain data with serde and an OpenAPI schema. This crate knows `model`, and neither HTTP
//! nor the store.
//!
//! Clients and servers of different versions read each other's answers:
//! - Clients ignore unknown fields of an answer. Servers refuse unknown fields of a request.
//! - Statuses and other open sets of words are text in answers, not enums, so that a new word does
//!   not break an old client.
//! - A field that an answer gains after a release is optional, or has `#[serde(default)]` and
//!   `#[schema(required)]`, so that a new client reads the answers of an old server.

pub mod agent;
pub mod amount;
pub mod cluster;
pub mod denied_owner;
pub mod deployment;
pub mod environment;
pub mod event;
pub mod executor;
pub mod explain;
pub mod graph;
pub mod health;
pub mod instance;
pub mod invite;
pub mod kind;
pub mod log;
pub mod organization;
pub mod page;
pub mod problem;
pub mod quota;
pub mod resource;
pub mod scaling;
pub mod search;
pub mod subject;
pub mod template;
pub mod user;

use serde::Serialize;
use serde_json::Value;

/// The word that an enum of the model is written as.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        other => unreachable!("not an enum of words: {other:?}"),
    }
}
