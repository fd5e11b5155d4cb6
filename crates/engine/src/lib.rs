//! Reconciles every subject towards its desired state, in small idempotent steps.
//!
//! A worker observes, plans (purely, in `model`) and acts. A half-done plan is input to the next
//! reconciliation, so there are no sagas and no rollback. The driver owns the queue, leases,
//! retries, limits and metrics; a worker owns none of these.

pub mod agent_reports;
pub mod cluster;
pub mod credentials;
pub mod deployment;
mod driver;
pub mod encryption;
pub mod endpoints;
pub mod environment;
pub mod executor;
pub mod housekeeping;
pub mod instance;
pub mod local_agent;
pub mod local_cluster;
mod locked;
mod metrics;
pub mod operation;
pub mod organization;
pub mod placement;
pub mod quota;
mod reconcile;
pub mod resource;
pub mod rules;
pub mod scaling;
pub mod search_index;
pub mod secrets;

pub use driver::{Driver, Options};
pub use metrics::Metrics;
pub use reconcile::{Error, Reconcile};
