//! The guard of an external system: a timeout per attempt, retries with jitter, and a circuit
//! breaker.
//!
//! A guard must never cause a retry storm: an open circuit breaker permits no calls, not even
//! retries that began before it opened.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use port::{Counts, Fault, Health, Monitored};
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

/// Retry and circuit breaker settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Maximum attempts per call, including the first.
    pub attempts: u32,
    /// The maximum delay before the first retry; it doubles with every further one.
    pub base_delay: Duration,
    /// The upper bound of all delays.
    pub max_delay: Duration,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The number of consecutive failed calls that opens the circuit breaker.
    pub failures_to_open: u32,
    /// How long the circuit breaker stays open before it permits a probe.
    pub open_for: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            attempts: 3,
            base_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(2),
            timeout: Duration::from_secs(10),
            failures_to_open: 5,
            open_for: Duration::from_secs(30),
        }
    }
}

/// Counters and state of a guard, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Requested calls.
    pub calls: u64,
    /// Attempts that reached the system.
    pub attempts: u64,
    /// Failed attempts: the system was down, slow or returned an invalid response.
    pub failures: u64,
    /// The state of the circuit breaker.
    pub state: State,
}

/// Guards the calls to one external system.
pub struct Guard {
    name: String,
    options: Options,
    noise: Box<dyn Fn() -> u64 + Send + Sync>,
    breaker: Mutex<Breaker>,
    calls: AtomicU64,
    attempts: AtomicU64,
    failures: AtomicU64,
}

impl Monitored for Guard {
    fn name(&self) -> &str {
        &self.name
    }

    fn health(&self) -> Health {
        Guard::health(self)
    }

    fn counts(&self) -> Counts {
        let now = self.snapshot();
        Counts { calls: now.attempts, failures: now.failures }
    }
}

impl Guard {
    /// A guard for the system with this display name. `noise` returns random numbers for the
    /// jitter, so that calls which failed together are not retried together.
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

    /// The display name of the system.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The health of the system after its last call.
    pub fn health(&self) -> Health {
        match self.breaker().reason() {
            Some(reason) => Health::Down { reason: reason.to_owned() },
            None => Health::Up,
        }
    }

    /// The current counters and state.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            calls: self.calls.load(Ordering::Relaxed),
            attempts: self.attempts.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            state: self.breaker().state(base::monotonic()),
        }
    }

    /// Calls the system, and retries while it is unavailable; the call must be idempotent.
    pub async fn call<T, A>(&self, mut call: impl FnMut() -> A) -> Result<T, Fault>
    where
        A: Future<Output = Result<T, Fault>>,
    {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut attempt = 0;
        loop {
            let permit = self.acquire()?;
            attempt += 1;
            match self.attempt(call()).await {
                Err(Fault::Unavailable(reason)) if permit.is_last(attempt) => {
                    permit.failed(&reason);
                    return Err(Fault::Unavailable(reason));
                }
                Err(Fault::Unavailable(reason)) => {
                    debug!(system = self.name, attempt, %reason, "call failed; retrying");
                    sleep(self.delay(attempt)).await;
                }
                // A refusal is an answer: the system works.
                answer => {
                    permit.succeeded();
                    return answer;
                }
            }
        }
    }

    /// Calls the system once, for callers that retry by themselves.
    pub async fn once<T>(&self, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let permit = self.acquire()?;
        let answer = self.attempt(call).await;
        match &answer {
            Err(Fault::Unavailable(reason)) => permit.failed(reason),
            _ => permit.succeeded(),
        }
        answer
    }

    async fn attempt<T>(&self, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let limit = self.options.timeout;
        let answer = timeout(limit, call).await.unwrap_or_else(|_| {
            Err(Fault::Unavailable(format!("{} did not answer within {limit:?}", self.name)))
        });
        if matches!(answer, Err(Fault::Unavailable(_))) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// A random delay between zero and the doubled maximum.
    fn delay(&self, attempt: u32) -> Duration {
        let doubled = self.options.base_delay.saturating_mul(1 << (attempt - 1).min(20));
        let most = doubled.min(self.options.max_delay);
        let most_us = u64::try_from(most.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros((self.noise)() % (most_us + 1))
    }

    fn acquire(&self) -> Result<Permit<'_>, Fault> {
        match self.breaker().admit(base::monotonic()) {
            Ok(pass) => Ok(Permit { guard: self, pass: Some(pass) }),
            Err(reason) => Err(Fault::Unavailable(format!(
                "{} is unavailable: {reason}. Calls resume within {:?}",
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

/// Permission for one call. Dropping it, because the caller was cancelled, lets the next call be
/// the probe.
struct Permit<'a> {
    guard: &'a Guard,
    pass: Option<Pass>,
}

impl Permit<'_> {
    fn is_last(&self, attempt: u32) -> bool {
        self.pass == Some(Pass::Probe) || attempt >= self.guard.options.attempts
    }

    fn succeeded(mut self) {
        self.pass = None;
        if self.guard.breaker().succeeded() {
            info!(system = self.guard.name, "external system recovered");
        }
    }

    fn failed(mut self, reason: &str) {
        let Some(pass) = self.pass.take() else { return };
        if self.guard.breaker().failed(pass, reason, base::monotonic()) {
            warn!(
                system = self.guard.name,
                reason, "external system failed; circuit breaker opened"
            );
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.guard.breaker().abandoned(pass, base::monotonic());
        }
    }
}
