//! Clears a Kubernetes before what it stands on is destroyed, as far as it can be had.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::Instant;
use model::operation::Subject;
use port::{Operation, Progress, Task};
use tracing::info;

/// How long a Kubernetes may take to let go of what it holds: it is destroyed anyway.
const PATIENCE: Duration = Duration::from_mins(10);

/// Since when each is being cleared.
#[derive(Default)]
pub(super) struct Leaving(Mutex<HashMap<Subject, Instant>>);

impl Leaving {
    /// What has to be waited for, as a sentence; nothing if it is clear, or can't be reached.
    pub(super) async fn wait(&self, kubernetes: &dyn Operation, task: &Task) -> Option<String> {
        if self.since(task.id).elapsed() > PATIENCE {
            return None;
        }
        match kubernetes.destroy(task).await {
            Ok(Progress::Running { reason, .. }) => Some(reason.to_string()),
            Ok(Progress::Done(())) => None,
            Err(fault) => {
                info!(cluster.id = %task.id, "destroyed without being cleared: {fault}");
                None
            }
        }
    }

    fn since(&self, id: Subject) -> Instant {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(id).or_insert_with(base::monotonic)
    }

    pub(super) fn forget(&self, id: Subject) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
