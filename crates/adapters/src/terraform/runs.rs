//! Background runs: one at a time per key, with a global limit.
//!
//! Dropping [`Runs`] interrupts them all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Instant;
use base::task::Tasks;
use port::Fault;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

/// How long a result is retained. Later it may be outdated, and a new run is started.
const RETENTION: Duration = Duration::from_mins(2);

/// The state of the last run of a key, with its goal.
#[derive(Debug)]
pub(super) enum RunState<G, T> {
    /// There is none, or its result is no longer retained.
    None,
    /// Waiting for a free slot.
    Queued(G),
    /// Running.
    Running(G),
    /// Ended.
    Ended(G, Result<T, Fault>),
}

struct Run<G, T> {
    goal: G,
    number: u64,
    has_begun: Arc<AtomicBool>,
    task: AbortHandle,
    outcome: Option<Result<T, Fault>>,
    ended_at: Option<Instant>,
}

impl<G, T> Run<G, T> {
    /// Whether it ended long ago, or panicked and so has no outcome.
    fn is_past(&self) -> bool {
        match self.ended_at {
            Some(at) => at.elapsed() >= RETENTION,
            None => self.task.is_finished(),
        }
    }
}

struct Inner<G, T> {
    runs: HashMap<String, Run<G, T>>,
    tasks: Tasks<()>,
    last: u64,
}

/// All runs of this server.
pub(super) struct Runs<G, T> {
    inner: Arc<Mutex<Inner<G, T>>>,
    slots: Arc<Semaphore>,
    /// Counts starts and ends of runs.
    changes: Arc<watch::Sender<u64>>,
}

/// The phase of the last run of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    None,
    Queued,
    Running,
    Ended,
}

impl<G, T> Runs<G, T>
where
    G: Clone + Send + 'static,
    T: Clone + Send + 'static,
{
    pub(super) fn new(at_once: usize) -> Self {
        let inner = Inner { runs: HashMap::new(), tasks: Tasks::new(), last: 0 };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            slots: Arc::new(Semaphore::new(at_once.max(1))),
            changes: Arc::default(),
        }
    }

    /// Notifies of starts and ends of runs.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The phase of the last run of a key.
    pub(super) fn phase(&self, key: &str) -> Phase {
        match self.state(key) {
            RunState::None => Phase::None,
            RunState::Queued(_) => Phase::Queued,
            RunState::Running(_) => Phase::Running,
            RunState::Ended(..) => Phase::Ended,
        }
    }

    /// The state of the last run of a key.
    pub(super) fn state(&self, key: &str) -> RunState<G, T> {
        let inner = lock(&self.inner);
        let run = inner.runs.get(key).filter(|run| !run.is_past());
        let Some(run) = run else { return RunState::None };
        match &run.outcome {
            Some(outcome) => RunState::Ended(run.goal.clone(), outcome.clone()),
            None if run.has_begun.load(Ordering::Relaxed) => RunState::Running(run.goal.clone()),
            None => RunState::Queued(run.goal.clone()),
        }
    }

    /// Whether the limit of concurrent runs is reached.
    pub(super) fn are_full(&self) -> bool {
        self.slots.available_permits() == 0
    }

    /// Starts a run, unless one is queued or running for this key.
    pub(super) fn start<F>(&self, key: &str, goal: G, work: F)
    where
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let mut inner = lock(&self.inner);
        while inner.tasks.try_join_next().is_some() {}
        inner.runs.retain(|_, run| !run.is_past());
        if inner.runs.get(key).is_some_and(|old| old.outcome.is_none()) {
            return;
        }
        inner.last += 1;
        let (number, has_begun) = (inner.last, Arc::new(AtomicBool::new(false)));
        let (begun, slots) = (has_begun.clone(), self.slots.clone());
        let changes = self.changes.clone();
        let (all, name) = (Arc::downgrade(&self.inner), key.to_owned());
        let task = inner.tasks.spawn("terraform run", async move {
            // The semaphore is never closed.
            let slot = slots.acquire().await;
            begun.store(true, Ordering::Relaxed);
            changes.send_modify(|count| *count += 1);
            let outcome = work.await;
            // A caller that learns of the end may start the next run.
            drop(slot);
            let Some(all) = all.upgrade() else { return };
            let mut inner = lock(&all);
            if let Some(run) = inner.runs.get_mut(&name).filter(|run| run.number == number) {
                (run.outcome, run.ended_at) = (Some(outcome), Some(base::monotonic()));
            }
            drop(inner);
            changes.send_modify(|count| *count += 1);
        });
        let run = Run { goal, number, has_begun, task, outcome: None, ended_at: None };
        inner.runs.insert(key.to_owned(), run);
    }

    /// Removes the last run of a key, and interrupts it if it runs.
    pub(super) fn abort(&self, key: &str) {
        if let Some(run) = lock(&self.inner).runs.remove(key) {
            run.task.abort();
        }
    }
}

fn lock<G, T>(inner: &Mutex<Inner<G, T>>) -> MutexGuard<'_, Inner<G, T>> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn result_is_retained_for_a_while() {
        let runs = Runs::new(1);
        for key in ["a", "b"] {
            runs.start(key, "plan", async { Ok(7) });
        }
        tokio::time::sleep(Duration::from_secs(119)).await;
        assert!(matches!(runs.state("a"), RunState::Ended("plan", Ok(7))));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(matches!(runs.state("a"), RunState::None), "it may be outdated");
        runs.start("c", "plan", async { Ok(8) });
        assert_eq!(lock(&runs.inner).runs.len(), 1, "nobody else reads them");
    }

    #[tokio::test(start_paused = true)]
    async fn running_runs_are_retained_however_long_they_take() {
        let runs: Runs<_, ()> = Runs::new(1);
        runs.start("a", "apply", std::future::pending());
        runs.start("b", "apply", std::future::pending());
        tokio::time::sleep(Duration::from_hours(1)).await;
        runs.start("c", "plan", async { Ok(()) });
        assert!(matches!(runs.state("a"), RunState::Running("apply")));
        assert!(matches!(runs.state("b"), RunState::Queued("apply")));
        assert!(runs.are_full());
    }
}
