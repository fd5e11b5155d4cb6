//! No runtime: for machines on which none works. Says so, for every image.

use futures_util::{StreamExt, stream};
use model::agent::ReplicaId;
use model::deployment::Spec;

use super::logs::{LogStream, LogsFrom};
use super::{Condition, Runtime};

/// Runs nothing.
#[derive(Debug, Clone)]
pub struct Absent {
    /// Why there is none, and what to do about it.
    pub reason: String,
}

impl Runtime for Absent {
    async fn start(&self, _id: ReplicaId, _spec: &Spec) -> Result<Vec<String>, String> {
        Err(self.reason.clone())
    }

    async fn changed(&self, _id: ReplicaId, _seen: &Condition) -> Condition {
        std::future::pending().await
    }

    async fn stop(&self, _id: ReplicaId) -> Result<(), String> {
        Ok(())
    }

    fn logs(&self, _id: ReplicaId, _from: LogsFrom, _follow: bool) -> LogStream {
        stream::empty().boxed()
    }
}
