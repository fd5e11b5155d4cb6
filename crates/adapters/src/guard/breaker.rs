//! The circuit breaker. Pure; the caller passes the time.

use std::time::Duration;

use base::Instant;

/// The state of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Calls are permitted.
    Closed,
    /// Calls fail at once, because too many failed before.
    Open,
    /// One call is permitted as a probe; a slow probe does not block the next.
    HalfOpen,
}

/// The kind of a permitted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// The circuit breaker is closed.
    Usual,
    /// The call probes whether the system recovered.
    Probe,
}

/// Counts consecutive failures and opens after too many.
#[derive(Debug)]
pub(super) struct Breaker {
    failures_to_open: u32,
    open_for: Duration,
    /// Consecutive failed calls.
    failures: u32,
    /// Why the last call failed; none after a success.
    reason: Option<String>,
    /// Until when it is open, if it is.
    until: Option<Instant>,
    /// Whether a probe is running.
    is_probing: bool,
}

impl Breaker {
    pub(super) fn new(failures_to_open: u32, open_for: Duration) -> Self {
        let (failures, reason, until, is_probing) = Default::default();
        Self { failures_to_open, open_for, failures, reason, until, is_probing }
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    pub(super) fn state(&self, now: Instant) -> State {
        match self.until {
            None => State::Closed,
            Some(_) if self.is_probing => State::HalfOpen,
            Some(until) if now >= until => State::HalfOpen,
            Some(_) => State::Open,
        }
    }

    /// Permits a call, or returns why the system is considered down.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Pass, String> {
        match self.state(now) {
            State::Closed => Ok(Pass::Usual),
            State::HalfOpen if self.until.is_some_and(|until| now >= until) => {
                // The next probe is permitted once this one has taken as long as the open period.
                (self.until, self.is_probing) = (Some(now + self.open_for), true);
                Ok(Pass::Probe)
            }
            State::Open | State::HalfOpen => Err(self.reason.clone().unwrap_or_default()),
        }
    }

    /// Records a success; returns whether it closed the circuit breaker.
    pub(super) fn succeeded(&mut self) -> bool {
        (self.failures, self.reason, self.is_probing) = (0, None, false);
        self.until.take().is_some()
    }

    /// Records a call that failed for good; returns whether it opened the circuit breaker.
    pub(super) fn failed(&mut self, pass: Pass, reason: &str, now: Instant) -> bool {
        // A call that started before the circuit breaker opened must not extend the open period.
        if pass == Pass::Usual && self.until.is_some() {
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        self.reason = Some(reason.to_owned());
        if pass == Pass::Usual && self.failures < self.failures_to_open {
            return false;
        }
        (self.until, self.is_probing) = (Some(now + self.open_for), false);
        pass == Pass::Usual
    }

    /// Records a call that was cancelled.
    pub(super) fn abandoned(&mut self, pass: Pass, now: Instant) {
        if pass == Pass::Probe && self.is_probing {
            (self.until, self.is_probing) = (Some(now), false);
        }
    }
}
