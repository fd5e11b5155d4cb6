//! A clock to turn.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base::Clock;
use model::Time;

/// Shows the machine's time, moved by what was turned.
#[derive(Debug, Default)]
pub struct TestClock(AtomicI64);

impl TestClock {
    /// Lets time pass at once.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("a test's patience");
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time(base::SystemClock.now().0 + self.0.load(Ordering::SeqCst))
    }
}
