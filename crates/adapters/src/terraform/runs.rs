//! Runs in the background: one at a time for a key, and a bounded number over all.
//!
//! Dropping this interrupts them all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Instant;
use base::task::Tasks;
use port::Fault;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

/// How long it is known what came of a run. Later it may be true no more: whoever asks has it run again.
const KNOWN_FOR: Duration = Duration::from_mins(2);

/// What is known of the last run of a key: what it is for, and what came of it.
#[derive(Debug)]
pub(super) enum Look<A, T> {
    /// There was none, or it was forgotten, or it has ended long ago.
    None,
    /// It has not had its turn.
    Waits(A),
    /// It goes on.
    Goes(A),
    /// It has ended.
    Ended(A, Result<T, Fault>),
}

struct Run<A, T> {
    aim: A,
    number: u64,
    has_begun: Arc<AtomicBool>,
    task: AbortHandle,
    outcome: Option<Result<T, Fault>>,
    ended_at: Option<Instant>,
}

impl<A, T> Run<A, T> {
    /// Has it ended long ago, or panicked, so that nobody will say how it ended?
    fn is_past(&self) -> bool {
        match self.ended_at {
            Some(at) => at.elapsed() >= KNOWN_FOR,
            None => self.task.is_finished(),
        }
    }
}

struct Known<A, T> {
    runs: HashMap<String, Run<A, T>>,
    tasks: Tasks<()>,
    last: u64,
}

/// All runs of this server.
pub(super) struct Runs<A, T> {
    known: Arc<Mutex<Known<A, T>>>,
    turns: Arc<Semaphore>,
    /// Counts how often a run has begun or ended.
    changes: Arc<watch::Sender<u64>>,
}

/// How far the last run of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    None,
    Waits,
    Goes,
    Ended,
}

impl<A, T> Runs<A, T>
where
    A: Clone + Send + 'static,
    T: Clone + Send + 'static,
{
    pub(super) fn new(at_once: usize) -> Self {
        let known = Known { runs: HashMap::new(), tasks: Tasks::new(), last: 0 };
        Self {
            known: Arc::new(Mutex::new(known)),
            turns: Arc::new(Semaphore::new(at_once.max(1))),
            changes: Arc::default(),
        }
    }

    /// Announces that a run has begun or ended.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How far the last run of a key is.
    pub(super) fn phase(&self, key: &str) -> Phase {
        match self.look(key) {
            Look::None => Phase::None,
            Look::Waits(_) => Phase::Waits,
            Look::Goes(_) => Phase::Goes,
            Look::Ended(..) => Phase::Ended,
        }
    }

    /// How the last run of a key is doing.
    pub(super) fn look(&self, key: &str) -> Look<A, T> {
        let known = lock(&self.known);
        let run = known.runs.get(key).filter(|run| !run.is_past());
        let Some(run) = run else { return Look::None };
        match &run.outcome {
            Some(outcome) => Look::Ended(run.aim.clone(), outcome.clone()),
            None if run.has_begun.load(Ordering::Relaxed) => Look::Goes(run.aim.clone()),
            None => Look::Waits(run.aim.clone()),
        }
    }

    /// Do as many run as may?
    pub(super) fn are_full(&self) -> bool {
        self.turns.available_permits() == 0
    }

    /// Starts one, unless one goes on for this key.
    pub(super) fn start<F>(&self, key: &str, aim: A, work: F)
    where
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let mut known = lock(&self.known);
        while known.tasks.try_join_next().is_some() {}
        known.runs.retain(|_, run| !run.is_past());
        if known.runs.get(key).is_some_and(|old| old.outcome.is_none()) {
            return;
        }
        known.last += 1;
        let (number, has_begun) = (known.last, Arc::new(AtomicBool::new(false)));
        let (begun, turns) = (has_begun.clone(), self.turns.clone());
        let changes = self.changes.clone();
        let (all, name) = (Arc::downgrade(&self.known), key.to_owned());
        let task = known.tasks.spawn("terraform run", async move {
            // It is never closed.
            let turn = turns.acquire().await;
            begun.store(true, Ordering::Relaxed);
            changes.send_modify(|count| *count += 1);
            let outcome = work.await;
            // Whoever hears that it has ended may begin the next.
            drop(turn);
            let Some(all) = all.upgrade() else { return };
            let mut known = lock(&all);
            if let Some(run) = known.runs.get_mut(&name).filter(|run| run.number == number) {
                (run.outcome, run.ended_at) = (Some(outcome), Some(base::monotonic()));
            }
            drop(known);
            changes.send_modify(|count| *count += 1);
        });
        let run = Run { aim, number, has_begun, task, outcome: None, ended_at: None };
        known.runs.insert(key.to_owned(), run);
    }

    /// Forgets the last run of a key; one that goes on is interrupted.
    pub(super) fn forget(&self, key: &str) {
        if let Some(run) = lock(&self.known).runs.remove(key) {
            run.task.abort();
        }
    }
}

fn lock<A, T>(known: &Mutex<Known<A, T>>) -> MutexGuard<'_, Known<A, T>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_came_of_a_run_is_known_for_a_while_and_then_dropped() {
        let runs = Runs::new(1);
        for key in ["a", "b"] {
            runs.start(key, "look", async { Ok(7) });
        }
        tokio::time::sleep(Duration::from_secs(119)).await;
        assert!(matches!(runs.look("a"), Look::Ended("look", Ok(7))));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(matches!(runs.look("a"), Look::None), "it may be true no more");
        runs.start("c", "look", async { Ok(8) });
        assert_eq!(lock(&runs.known).runs.len(), 1, "nobody else asks for them");
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_not_dropped_however_long_it_takes() {
        let runs: Runs<_, ()> = Runs::new(1);
        runs.start("a", "make", std::future::pending());
        runs.start("b", "make", std::future::pending());
        tokio::time::sleep(Duration::from_hours(1)).await;
        runs.start("c", "look", async { Ok(()) });
        assert!(matches!(runs.look("a"), Look::Goes("make")));
        assert!(matches!(runs.look("b"), Look::Waits("make")));
        assert!(runs.are_full());
    }
}
