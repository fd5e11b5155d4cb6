//! What stands between a worker and a foreign system: a limit per attempt, retries that are spread,
//! and a breaker that leaves alone what is down.
//!
//! It must never be the cause of a storm: an open breaker makes no calls, also none of those retries
//! that had begun before it opened.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use port::{Counts, Fault, Health, Watched};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use breaker::{Breaker, Pass};

mod breaker;
mod guarded;
mod guards;
#[cfg(test)]
mod tests;

pub use breaker::State;
pub use guarded::Guarded;
pub(crate) use guards::Guards;

/// How patient a guard is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How often one call is tried, the first time included.
    pub attempts: u32,
    /// The longest wait after the first failure; it doubles with every other one.
    pub first_delay: Duration,
    /// No wait is longer.
    pub longest_delay: Duration,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// After so many failed calls in a row the system is left alone.
    pub failures_to_open: u32,
    /// How long it is left alone before one call is let through to see.
    pub open_for: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(2),
            timeout: Duration::from_secs(10),
            failures_to_open: 5,
            open_for: Duration::from_secs(30),
        }
    }
}

/// What a guard has counted so far, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Calls that somebody wanted.
    pub calls: u64,
    /// Times that the system was really asked.
    pub attempts: u64,
    /// Times that it did not do its part: down, slow or confused.
    pub failures: u64,
    /// Whether it is asked at all.
    pub state: State,
}

/// Stands before one foreign system.
pub struct Guard {
    name: String,
    options: Options,
    noise: Box<dyn Fn() -> u64 + Send + Sync>,
    breaker: Mutex<Breaker>,
    calls: AtomicU64,
    attempts: AtomicU64,
    failures: AtomicU64,
}

impl Watched for Guard {
    fn name(&self) -> &str {
        &self.name
    }

    fn health(&self) -> Health {
        Guard::health(self)
    }

    fn counts(&self) -> Counts {
        let now = self.snapshot();
        Counts { asked: now.attempts, failed: now.failures }
    }
}

impl Guard {
    /// A guard before the system that users know by `name`. `noise` gives random numbers: without
    /// them, what failed together would try again together.
    pub fn new(
        name: impl Into<String>,
        options: Options,
        noise: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let breaker = Mutex::new(Breaker::new(options.failures_to_open, options.open_for));
        let (calls, attempts, failures) = Default::default();
        Self {
            name: name.into(),
            options,
            noise: Box::new(noise),
            breaker,
            calls,
            attempts,
            failures,
        }
    }

    /// What users know the system by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the system is doing: as its last call ended.
    pub fn health(&self) -> Health {
        match self.breaker().reason() {
            Some(reason) => Health::Down { reason: reason.to_owned() },
            None => Health::Up,
        }
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            calls: self.calls.load(Ordering::Relaxed),
            attempts: self.attempts.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            state: self.breaker().state(base::monotonic()),
        }
    }

    /// Asks, and asks again if the system is not available; the call must be repeatable.
    pub async fn call<T, A>(&self, mut ask: impl FnMut() -> A) -> Result<T, Fault>
    where
        A: Future<Output = Result<T, Fault>>,
    {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut tried = 0;
        loop {
            let turn = self.turn()?;
            tried += 1;
            match self.attempt(ask()).await {
                Err(Fault::Unavailable(reason)) if turn.is_last(tried) => {
                    turn.failed(&reason);
                    return Err(Fault::Unavailable(reason));
                }
                Err(Fault::Unavailable(reason)) => {
                    debug!(system = self.name, tried, "{reason}; trying again");
                    sleep(self.delay(tried)).await;
                }
                // A refusal is an answer: the system works.
                answer => {
                    turn.succeeded();
                    return answer;
                }
            }
        }
    }

    /// Asks once: whoever asks tries again by himself.
    pub async fn once<T>(&self, asked: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let turn = self.turn()?;
        let answer = self.attempt(asked).await;
        match &answer {
            Err(Fault::Unavailable(reason)) => turn.failed(reason),
            _ => turn.succeeded(),
        }
        answer
    }

    async fn attempt<T>(&self, asked: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let limit = self.options.timeout;
        let answer = timeout(limit, asked).await.unwrap_or_else(|_| {
            Err(Fault::Unavailable(format!("{} did not answer within {limit:?}", self.name)))
        });
        if matches!(answer, Err(Fault::Unavailable(_))) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// Anything between nothing and a doubling time.
    fn delay(&self, tried: u32) -> Duration {
        let doubled = self.options.first_delay.saturating_mul(1 << (tried - 1).min(20));
        let most = doubled.min(self.options.longest_delay);
        let most_us = u64::try_from(most.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros((self.noise)() % (most_us + 1))
    }

    fn turn(&self) -> Result<Turn<'_>, Fault> {
        match self.breaker().admit(base::monotonic()) {
            Ok(pass) => Ok(Turn { guard: self, pass: Some(pass) }),
            Err(reason) => Err(Fault::Unavailable(format!(
                "{} is not asked again before {:?} have passed: {reason}",
                self.name, self.options.open_for
            ))),
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The right to ask once. One that is dropped, because nobody waits for the answer any more, leaves
/// the place of the probe to the next.
struct Turn<'a> {
    guard: &'a Guard,
    pass: Option<Pass>,
}

impl Turn<'_> {
    fn is_last(&self, tried: u32) -> bool {
        self.pass == Some(Pass::Probe) || tried >= self.guard.options.attempts
    }

    fn succeeded(mut self) {
        self.pass = None;
        if self.guard.breaker().succeeded() {
            info!(system = self.guard.name, "{} answers again", self.guard.name);
        }
    }

    fn failed(mut self, reason: &str) {
        let Some(pass) = self.pass.take() else { return };
        if self.guard.breaker().failed(pass, reason, base::monotonic()) {
            warn!(system = self.guard.name, "{} is left alone: {reason}", self.guard.name);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.guard.breaker().abandoned(pass, base::monotonic());
        }
    }
}
