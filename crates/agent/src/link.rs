//! Connection of an agent to its control plane.

use std::future::Future;

use model::agent::{Desired, Report};

/// The control plane did not answer. The agent retries.
#[derive(Debug, thiserror::Error)]
#[error("control plane did not answer: {0}")]
pub struct LinkError(pub String);

/// A connection to the control plane.
pub trait Link: Send + Sync + 'static {
    /// Fetches desired state: all of it, or only what was not reported yet.
    fn desired(&self, all: bool) -> impl Future<Output = Result<Vec<Desired>, LinkError>> + Send;

    /// Returns when desired state may have changed.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Reports observed state, atomically.
    fn report(&self, reports: &[Report]) -> impl Future<Output = Result<(), LinkError>> + Send;
}
