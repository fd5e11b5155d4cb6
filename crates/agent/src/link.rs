//! How an agent talks with its control plane.

use std::future::Future;

use model::agent::{Desired, Report};

/// The control plane did not answer. Trying again is the agent's business.
#[derive(Debug, thiserror::Error)]
#[error("the control plane did not answer: {0}")]
pub struct LinkError(pub String);

/// A link to the control plane.
pub trait Link: Send + Sync + 'static {
    /// What shall be: all of it, or only what was not answered yet.
    fn desired(&self, all: bool) -> impl Future<Output = Result<Vec<Desired>, LinkError>> + Send;

    /// Returns when there may be something new.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Says what is. All of it arrives, or none.
    fn report(&self, reports: &[Report]) -> impl Future<Output = Result<(), LinkError>> + Send;
}
