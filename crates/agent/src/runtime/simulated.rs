//! A runtime without containers: starts and stops at once or after a while, fails when told to.
//!
//! For trying Paddock out and for tests. Chosen only by name, never by itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::DeploymentId;
use model::deployment::Spec;

use super::{Ending, Runtime};

/// How it behaves.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How long a start takes.
    pub start_delay: Duration,
    /// How long a stop takes.
    pub stop_delay: Duration,
    /// Images whose path contains this text fail to start.
    pub fail: Option<String>,
    /// Images whose path contains this text run to their end, after `run_for`.
    pub complete: Option<String>,
    /// How long those run.
    pub run_for: Duration,
}

/// The runtime.
#[derive(Debug, Default)]
pub struct Simulated {
    options: Options,
    /// The images of what runs.
    running: Mutex<HashMap<DeploymentId, String>>,
}

impl Simulated {
    /// A runtime that behaves so.
    pub fn new(options: Options) -> Self {
        Self { options, running: Mutex::default() }
    }

    fn matches(text: Option<&String>, image: &str) -> bool {
        text.is_some_and(|text| image.contains(text.as_str()))
    }

    fn image_of(&self, id: DeploymentId) -> Option<String> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

impl Runtime for Simulated {
    async fn start(&self, id: DeploymentId, spec: &Spec) -> Result<Vec<String>, String> {
        let image = spec.image.clone().unwrap_or_default();
        tokio::time::sleep(self.options.start_delay).await;
        if Self::matches(self.options.fail.as_ref(), &image) {
            return Err(format!("The simulated runtime was told to fail images like {image}."));
        }
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(id, image);
        Ok(spec.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect())
    }

    async fn ended(&self, id: DeploymentId) -> Ending {
        let image = self.image_of(id).unwrap_or_default();
        if !Self::matches(self.options.complete.as_ref(), &image) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(self.options.run_for).await;
        Ending::Completed
    }

    async fn stop(&self, id: DeploymentId) -> Result<(), String> {
        tokio::time::sleep(self.options.stop_delay).await;
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        Ok(())
    }
}
