//! The breaker: when a system is asked at all. Pure; the time comes in.

use std::time::Duration;

use base::Instant;

/// Whether a system is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is.
    Closed,
    /// It has failed too often and is left alone.
    Open,
    /// One call is let through, to see how it is; one that takes long is not waited for.
    HalfOpen,
}

/// By what right a call goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Nothing is known against the system.
    Usual,
    /// It is the one that sees how the system is.
    Probe,
}

/// Counts failures in a row, and closes the way for a while.
#[derive(Debug)]
pub(super) struct Breaker {
    failures_to_open: u32,
    open_for: Duration,
    /// Failed calls in a row.
    failures: u32,
    /// Why the last one failed; none after one that did not.
    reason: Option<String>,
    /// Until when the way is closed, if it is.
    until: Option<Instant>,
    /// Whether the one that sees is on its way.
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

    /// Lets a call through, or says what is known against the system.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Pass, String> {
        match self.state(now) {
            State::Closed => Ok(Pass::Usual),
            State::HalfOpen if self.until.is_some_and(|until| now >= until) => {
                // The next one goes when this one has had as long as the system is left alone for.
                (self.until, self.is_probing) = (Some(now + self.open_for), true);
                Ok(Pass::Probe)
            }
            State::Open | State::HalfOpen => Err(self.reason.clone().unwrap_or_default()),
        }
    }

    /// The system has answered; whether that opened the way again.
    pub(super) fn succeeded(&mut self) -> bool {
        (self.failures, self.reason, self.is_probing) = (0, None, false);
        self.until.take().is_some()
    }

    /// A call has failed for good; whether that closed the way.
    pub(super) fn failed(&mut self, pass: Pass, reason: &str, now: Instant) -> bool {
        // Who started before the way was closed must not keep it closed for longer.
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

    /// A call has ended without an answer.
    pub(super) fn abandoned(&mut self, pass: Pass, now: Instant) {
        if pass == Pass::Probe && self.is_probing {
            (self.until, self.is_probing) = (Some(now), false);
        }
    }
}
