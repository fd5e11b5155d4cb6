//! The one place that reads the time.

use model::Time;

/// Tells the time. Injected, so that tests can let days pass at once.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Time;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is its one place")]
    fn now(&self) -> Time {
        Time(0)
            + std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }
}
