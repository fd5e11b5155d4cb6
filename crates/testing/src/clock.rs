//! A clock that tests can advance.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base::Clock;
use model::Time;

/// The system clock plus an offset.
#[derive(Debug, Default)]
pub struct TestClock(AtomicI64);

impl TestClock {
    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("a test's duration");
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time(base::SystemClock.now().0 + self.0.load(Ordering::SeqCst))
    }
}
