//! Rows, events and the work queue, in SQLite or PostgreSQL.
//!
//! One file of statements per subject; one set of SQL for both engines. Concurrency control is in
//! the `WHERE` of a statement, never in an isolation level. Every change of a subject appends its
//! event and wakes its worker in the same transaction. The database is asked neither for the time
//! nor for randomness.
//!
//! Nothing here knows HTTP or a foreign system.

pub mod account;
pub mod agent_token;
pub mod capacity;
pub mod cluster;
pub mod db;
pub mod denied_owner;
pub mod deployment;
pub mod environment;
mod error;
pub mod event;
pub mod finding;
pub mod foreign;
pub mod graph;
pub mod idempotency;
pub mod instance;
pub mod invite;
pub mod lease;
mod migration;
pub mod operation;
pub mod organization;
pub mod pool;
pub mod quota;
pub mod resource;
mod scope;
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
pub use subject::{Filter, Id, Subject, count, get, list, resync, statements, take};
