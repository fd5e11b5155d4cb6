//! No runtime: for machines on which none works. Says so, for every image.

use model::DeploymentId;
use model::deployment::Spec;

use super::{Ending, Runtime};

/// Runs nothing.
#[derive(Debug, Clone)]
pub struct Absent {
    /// Why there is none, and what to do about it.
    pub reason: String,
}

impl Runtime for Absent {
    async fn start(&self, _id: DeploymentId, _spec: &Spec) -> Result<Vec<String>, String> {
        Err(self.reason.clone())
    }

    async fn ended(&self, _id: DeploymentId) -> Ending {
        std::future::pending().await
    }

    async fn stop(&self, _id: DeploymentId) -> Result<(), String> {
        Ok(())
    }
}
