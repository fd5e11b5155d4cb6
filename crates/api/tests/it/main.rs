//! The APIs as their callers see them: a whole server, on both databases.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod accounting;
mod agent;
mod appendix;
mod authorisation;
mod bad_input;
mod bad_values;
mod calls;
mod capacity;
mod cluster;
mod concurrency;
mod deployment;
mod event;
mod explain;
mod fleet;
mod fleet_account;
mod fleet_admin;
mod fleet_agent;
mod fleet_cluster;
mod fleet_error;
mod fleet_instance;
mod fleet_list;
mod fleet_mock;
mod fleet_oidc;
mod fleet_promotion;
mod fleet_quota;
mod fleet_wire;
mod golden;
mod idempotency;
mod instance;
mod invite;
mod login;
mod paging;
mod placement;
mod replica;
mod secrets;
mod service;
mod shared_cluster;
mod sse;
mod stream;
mod tenancy;
mod throttle;
mod user;
mod version;
mod world;
