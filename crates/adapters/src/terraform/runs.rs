//! Runs in the background: one at a time for a key, and a bounded number over all.
//!
//! Dropping this interrupts them all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::port::Fault;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

/// What is known of the last run of a key: what it is for, and what came of it.
#[derive(Debug)]
pub(super) enum Look<A, T> {
    /// There was none, or it was forgotten.
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
}

struct Known<A, T> {
    runs: HashMap<String, Run<A, T>>,
    tasks: JoinSet<()>,
    last: u64,
}

/// All runs of this server.
pub(super) struct Runs<A, T> {
    known: Arc<Mutex<Known<A, T>>>,
    turns: Arc<Semaphore>,
}

impl<A, T> Runs<A, T>
where
    A: Clone + Send + 'static,
    T: Clone + Send + 'static,
{
    pub(super) fn new(at_once: usize) -> Self {
        let known = Known { runs: HashMap::new(), tasks: JoinSet::new(), last: 0 };
        Self { known: Arc::new(Mutex::new(known)), turns: Arc::new(Semaphore::new(at_once.max(1))) }
    }

    /// How the last run of a key is doing.
    pub(super) fn look(&self, key: &str) -> Look<A, T> {
        let known = lock(&self.known);
        let Some(run) = known.runs.get(key) else { return Look::None };
        match &run.outcome {
            Some(outcome) => Look::Ended(run.aim.clone(), outcome.clone()),
            // It has panicked: nobody will say how it ended.
            None if run.task.is_finished() => Look::None,
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
        let old = known.runs.get(key);
        if old.is_some_and(|old| old.outcome.is_none() && !old.task.is_finished()) {
            return;
        }
        known.last += 1;
        let (number, has_begun) = (known.last, Arc::new(AtomicBool::new(false)));
        let (begun, turns) = (has_begun.clone(), self.turns.clone());
        let (all, name) = (Arc::downgrade(&self.known), key.to_owned());
        let task = known.tasks.spawn(async move {
            // It is never closed.
            let _turn = turns.acquire().await;
            begun.store(true, Ordering::Relaxed);
            let outcome = work.await;
            let Some(all) = all.upgrade() else { return };
            let mut known = lock(&all);
            if let Some(run) = known.runs.get_mut(&name).filter(|run| run.number == number) {
                run.outcome = Some(outcome);
            }
        });
        known.runs.insert(key.to_owned(), Run { aim, number, has_begun, task, outcome: None });
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
