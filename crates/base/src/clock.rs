//! The wall clock and the monotonic clock.

use model::Time;
pub use tokio::time::Instant;

/// A wall clock. Injected, so that tests can advance it.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Time;
}

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Time {
        Time(0)
            + std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }
}

/// The monotonic clock: for timeouts and measured durations, never for stored times.
///
/// It is tokio's clock, so that a test that pauses time controls it. Outside a tokio runtime it is
/// the operating system's.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
pub fn monotonic() -> Instant {
    Instant::now()
}
