//! The store, on both engines: statements, transactions, the log, the queue, capacity, tenancy.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod capacity;
mod event;
mod finding;
mod follower;
mod giving_up;
mod group_commit;
mod lease;
mod limit;
mod list;
mod migration;
mod pool;
mod scope;
mod search;
mod signal;
mod statement;
mod status;
mod support;
mod transaction;
mod upgrade;
mod work;
mod work_fence;
mod work_race;
