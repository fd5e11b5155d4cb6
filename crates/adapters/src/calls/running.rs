//! Calls in the background: one per resource, and a bounded number over all. Dropping this ends them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Instant;
use base::task::Tasks;
use model::operation::Subject;
use port::{Fault, Task};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How many go on at once.
const AT_ONCE: usize = 256;
/// How long an outcome is kept that nobody asks for: another server may have taken over.
const KEPT_FOR: Duration = Duration::from_mins(10);

/// How a call ended; none while it goes on.
pub(super) type Outcome = watch::Receiver<Option<Result<port::Outcome, Fault>>>;

/// Whether a call goes on.
pub(super) enum Turn {
    /// It does, or has ended.
    Goes(Outcome),
    /// Too many others do.
    Waits,
}

struct Call {
    /// Of which change it is.
    change: String,
    outcome: Outcome,
    task: AbortHandle,
    asked_at: Instant,
}

#[derive(Default)]
struct Known {
    calls: HashMap<Subject, Call>,
    tasks: Tasks<()>,
}

/// All calls of this server.
#[derive(Default)]
pub(super) struct Running(Mutex<Known>);

impl Running {
    /// The call of a task: the one that goes on, or a new one. One of an earlier change is ended.
    pub(super) fn turn<F>(&self, task: &Task, make: impl FnOnce() -> F) -> Turn
    where
        F: Future<Output = Result<port::Outcome, Fault>> + Send + 'static,
    {
        let mut known = self.known();
        known.tidy();
        if let Some(call) = known.calls.get_mut(&task.id)
            && call.change == task.key
        {
            call.asked_at = base::monotonic();
            return Turn::Goes(call.outcome.clone());
        }
        known.forget(task.id);
        if known.tasks.len() >= AT_ONCE {
            return Turn::Waits;
        }
        let (said, outcome) = watch::channel(None);
        let answer = make();
        let running = known.tasks.spawn("call", async move {
            // Nobody may be there any more who wants to know.
            let _ = said.send(Some(answer.await));
        });
        let (change, asked_at) = (task.key.clone(), base::monotonic());
        let call = Call { change, outcome: outcome.clone(), task: running, asked_at };
        known.calls.insert(task.id, call);
        Turn::Goes(outcome)
    }

    /// The outcome of the call of a resource, if one was made.
    pub(super) fn outcome(&self, id: Subject) -> Option<Outcome> {
        self.known().calls.get(&id).map(|call| call.outcome.clone())
    }

    /// Forgets the call of a resource; one that goes on is ended.
    pub(super) fn forget(&self, id: Subject) {
        self.known().forget(id);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn tidy(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.calls.retain(|_, call| !call.task.is_finished() || call.asked_at.elapsed() < KEPT_FOR);
    }

    fn forget(&mut self, id: Subject) {
        if let Some(call) = self.calls.remove(&id) {
            call.task.abort();
        }
    }
}
