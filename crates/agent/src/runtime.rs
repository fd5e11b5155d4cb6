//! What runs containers.

pub(crate) mod absent;
pub(crate) mod credentials;
pub mod docker;
pub mod embedded;
pub mod kubernetes;
pub(crate) mod limits;
pub(crate) mod locks;
pub(crate) mod logs;
pub(crate) mod sentence;
pub mod simulated;

use std::future::Future;

use model::agent::{Observed, ReplicaId};
use model::deployment::Spec;

use logs::{LogStream, LogsFrom};

/// Why what has no image is not run. The agent does not ask for it.
pub(crate) const NO_IMAGE: &str = "There is no image to run.";

/// How a replica is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It runs.
    Running {
        /// Where each of its ports can be reached.
        endpoints: Vec<String>,
    },
    /// It ended and will be started again.
    Restarting {
        /// How it ended and when it is tried again, as a sentence.
        reason: String,
    },
    /// It ended as it should.
    Completed,
    /// It ended as it should not; why, as a sentence.
    Failed(String),
}

impl From<Condition> for Observed {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition::Running { endpoints } => Observed::Running { endpoints },
            Condition::Restarting { reason } => Observed::Restarting { reason },
            Condition::Completed => Observed::Completed,
            Condition::Failed(reason) => Observed::Failed { reason },
        }
    }
}

/// Runs containers. Every call can be repeated: it finds its own work of before. Every call can be
/// dropped before it returns: the next one takes up what it has left.
pub trait Runtime: Send + Sync + 'static {
    /// Starts it, or finds that it runs; where it can be reached, or why it can't run, as a sentence
    /// that a user can act on.
    fn start(
        &self,
        id: ReplicaId,
        spec: &Spec,
    ) -> impl Future<Output = Result<Vec<String>, String>> + Send;

    /// The same on one of the cluster's nodes, where there are several; how it is doing then.
    fn start_on(
        &self,
        id: ReplicaId,
        _node: &str,
        spec: &Spec,
    ) -> impl Future<Output = Condition> + Send {
        async move {
            match self.start(id, spec).await {
                Ok(endpoints) => Condition::Running { endpoints },
                Err(reason) => Condition::Failed(reason),
            }
        }
    }

    /// Returns when it is doing differently than `seen`, which came from `start` or from here.
    fn changed(&self, id: ReplicaId, seen: &Condition) -> impl Future<Output = Condition> + Send;

    /// Stops it and removes all that is left of it.
    fn stop(&self, id: ReplicaId) -> impl Future<Output = Result<(), String>> + Send;

    /// Can what it starts be reached? Not if it only pretends.
    fn is_real(&self) -> bool {
        true
    }

    /// Does it see to it by itself that what must answer does before it says that it runs?
    fn asks_itself(&self) -> bool {
        false
    }

    /// What it said, and, to who follows, what it says until it ends. Nothing when there is none.
    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream;
}
