//! Removes Paddock's objects from a Kubernetes before its infrastructure is destroyed, if it is
//! reachable.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::Instant;
use model::operation::Subject;
use port::{Operation, Progress, Task};
use tracing::info;

/// The maximum duration: the infrastructure is destroyed anyway.
const TIMEOUT: Duration = Duration::from_mins(10);

/// When the cleanup of each cluster began.
#[derive(Default)]
pub(super) struct Cleanup(Mutex<HashMap<Subject, Instant>>);

impl Cleanup {
    /// What the cleanup waits for; none if it has finished, or the cluster is unreachable.
    pub(super) async fn wait(&self, kubernetes: &dyn Operation, task: &Task) -> Option<String> {
        if self.began_at(task.id).elapsed() > TIMEOUT {
            return None;
        }
        match kubernetes.destroy(task).await {
            Ok(Progress::Running { reason, .. }) => Some(reason.to_string()),
            Ok(Progress::Done(())) => None,
            Err(fault) => {
                info!(cluster.id = %task.id, %fault, "cleanup skipped before destroying the cluster");
                None
            }
        }
    }

    fn began_at(&self, id: Subject) -> Instant {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(id).or_insert_with(base::monotonic)
    }

    pub(super) fn evict(&self, id: Subject) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
