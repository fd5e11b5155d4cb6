//! Request and response types of `/api/v1`, shared by the server and its clients.
//!
//! Types are plain data with serde and an OpenAPI schema. This crate depends on `model` only: no
//! HTTP, no store.
//!
//! Clients and servers of different versions interoperate:
//! - Clients ignore unknown response fields. Servers reject unknown request fields.
//! - Statuses and other open sets are strings in responses, not enums, so that a new value does not
//!   break an old client.
//! - A response field added after a release is optional, or has `#[serde(default)]` and
//!   `#[schema(required)]`, so that a new client can read responses of an old server.

pub mod agent;
pub mod amount;
pub mod cluster;
pub mod credential;
pub mod denied_owner;
pub mod deployment;
pub mod encryption;
pub mod environment;
pub mod event;
pub mod executor;
pub mod explain;
pub mod graph;
pub mod health;
pub mod image;
pub mod instance;
pub mod invite;
pub mod kind;
pub mod log;
pub mod organization;
pub mod page;
pub mod password;
pub mod problem;
pub mod quota;
pub mod resource;
pub mod scaling;
pub mod search;
pub mod subject;
pub mod template;
pub mod token;
pub mod user;

use serde::Serialize;
use serde_json::Value;

/// Serialized name of a fieldless model enum variant.
fn variant(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(variant)) => variant,
        other => unreachable!("not a fieldless enum variant: {other:?}"),
    }
}
