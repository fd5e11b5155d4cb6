//! Brings every subject to where it should be, one small idempotent step at a time.
//!
//! A worker looks, plans (purely, in `model`) and acts. A half-done plan is just an input to the next
//! look, so there are no sagas and no unwinding. The driver owns the queue, leases, retries, limits
//! and metrics; a worker owns none of these.

pub mod agent_reports;
pub mod cluster;
pub mod deployment;
mod driver;
pub mod environment;
pub mod executor;
pub mod finding;
mod held;
pub mod housekeeping;
pub mod instance;
pub mod local_agent;
pub mod local_cluster;
mod metrics;
pub mod operation;
pub mod placement;
mod reconcile;
pub mod resource;
pub mod rules;
pub mod scaling;
pub mod sealed;

pub use driver::{Driver, Options};
pub use metrics::Metrics;
pub use reconcile::{Error, Reconcile};
