//! Time, randomness, tasks, shutdown, signals and named locks.
//!
//! Everything a process takes from its surroundings without a foreign system: the wall clock and the
//! monotonic clock, random bytes, background tasks, the shutdown signal. Each has exactly one source,
//! here, so that tests and simulations can replace it; clippy bans the originals everywhere else
//! (`clippy.toml`).
//!
//! This crate knows `model` for its time and id types, and no other crate of the workspace.

pub mod clock;
pub mod entropy;
pub mod locks;
pub mod signals;
pub mod stop;
pub mod task;

pub use clock::{Clock, Instant, SystemClock, monotonic};
pub use entropy::{Entropy, OsEntropy};
pub use stop::{Stop, Stopper};
