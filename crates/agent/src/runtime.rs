//! What runs containers.

pub(crate) mod absent;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod simulated;

use std::future::Future;

use model::DeploymentId;
use model::deployment::Spec;

/// How something that ran came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Completed,
    /// Not as it should; why, as a sentence.
    Failed(String),
}

/// Runs containers. Every call can be repeated: it finds its own work of before.
pub trait Runtime: Send + Sync + 'static {
    /// Starts it; where it can be reached, or why it can't run, as a sentence that a user can act on.
    fn start(
        &self,
        id: DeploymentId,
        spec: &Spec,
    ) -> impl Future<Output = Result<Vec<String>, String>> + Send;

    /// Returns when it ends by itself.
    fn ended(&self, id: DeploymentId) -> impl Future<Output = Ending> + Send;

    /// Stops it and removes all that is left of it.
    fn stop(&self, id: DeploymentId) -> impl Future<Output = Result<(), String>> + Send;
}
