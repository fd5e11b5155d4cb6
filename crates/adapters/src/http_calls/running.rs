//! Background calls: one per resource, with a global limit. Dropping [`Running`] aborts them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Instant;
use base::task::Tasks;
use model::operation::Subject;
use port::{Fault, Task};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The maximum number of concurrent calls.
const MAX_CALLS: usize = 256;
/// How long an unread outcome is retained: another server may have taken over the resource.
const RETENTION: Duration = Duration::from_mins(10);

/// The outcome of a call; none while it runs.
pub(super) type Outcome = watch::Receiver<Option<Result<port::Outcome, Fault>>>;

/// The result of starting a call.
pub(super) enum Call {
    /// The call runs or has ended.
    Started(Outcome),
    /// The limit of concurrent calls is reached.
    Queued,
}

struct Entry {
    /// The change for which the call is made.
    change: String,
    outcome: Outcome,
    task: AbortHandle,
    polled_at: Instant,
}

#[derive(Default)]
struct Inner {
    calls: HashMap<Subject, Entry>,
    tasks: Tasks<()>,
}

/// All calls of this server.
#[derive(Default)]
pub(super) struct Running(Mutex<Inner>);

impl Running {
    /// Returns the running call of a task, or starts one. A call of an earlier change is aborted.
    pub(super) fn start<F>(&self, task: &Task, make: impl FnOnce() -> F) -> Call
    where
        F: Future<Output = Result<port::Outcome, Fault>> + Send + 'static,
    {
        let mut inner = self.lock();
        inner.evict();
        if let Some(call) = inner.calls.get_mut(&task.id)
            && call.change == task.key
        {
            call.polled_at = base::monotonic();
            return Call::Started(call.outcome.clone());
        }
        inner.abort(task.id);
        if inner.tasks.len() >= MAX_CALLS {
            return Call::Queued;
        }
        let (sender, outcome) = watch::channel(None);
        let answer = make();
        let running = inner.tasks.spawn("call", async move {
            // All receivers may be dropped.
            let _ = sender.send(Some(answer.await));
        });
        let (change, polled_at) = (task.key.clone(), base::monotonic());
        let call = Entry { change, outcome: outcome.clone(), task: running, polled_at };
        inner.calls.insert(task.id, call);
        Call::Started(outcome)
    }

    /// The outcome of a resource's call, if one was started.
    pub(super) fn outcome(&self, id: Subject) -> Option<Outcome> {
        self.lock().calls.get(&id).map(|call| call.outcome.clone())
    }

    /// Removes the call of a resource and aborts it if it runs.
    pub(super) fn abort(&self, id: Subject) {
        self.lock().abort(id);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Removes finished calls that nobody polled for a while.
    fn evict(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        let is_recent = |call: &Entry| call.polled_at.elapsed() < RETENTION;
        self.calls.retain(|_, call| !call.task.is_finished() || is_recent(call));
    }

    fn abort(&mut self, id: Subject) {
        if let Some(call) = self.calls.remove(&id) {
            call.task.abort();
        }
    }
}
