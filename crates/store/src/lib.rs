//! Rows, events and the work queue, in SQLite or PostgreSQL.
//!
//! One file of statements per subject; one set of SQL for both engines. Concurrency control is in
//! the `WHERE` of a statement, never in an isolation level. Every change of a subject appends its
//! event and wakes its worker in the same transaction. Time and randomness never come from the
//! database.
//!
//! Nothing here knows HTTP or external systems.

pub mod agent_token;
pub mod capacity;
pub mod cluster;
pub mod credential;
pub mod db;
pub mod denied_owner;
pub mod deployment;
pub mod encrypted;
pub mod encryption_key;
pub mod environment;
mod error;
pub mod event;
pub mod external_identity;
pub mod graph;
pub mod idempotency;
pub mod instance;
pub mod invite;
pub mod lease;
pub mod machine;
mod migration;
pub mod operation;
pub mod organization;
pub mod organization_quota;
pub mod password_reset;
pub mod pool;
pub mod quota;
pub mod quota_usage;
pub mod resource;
mod scope;
pub mod search_index;
pub mod service_account;
mod status;
mod subject;
pub mod template;
pub mod token;
pub mod user;
pub mod work;

pub use db::{Db, Durability, Read, Tx};
pub use error::{Error, Result};
pub use model::Page;
pub use scope::Scope;
pub use status::{Lifecycle, State, explain, save, transition};
pub use subject::{Filter, Id, Subject, count, get, list, lock, resync, statements};
