//! Time, randomness, tasks, shutdown, signals, locks, checked DNS resolution and removal of directory
//! trees.
//!
//! The process-wide facilities: wall clock and monotonic clock, random bytes, background tasks, the
//! shutdown signal. Each has a single source, here, so that tests and simulations can replace it;
//! clippy bans the originals everywhere else (`clippy.toml`).
//!
//! This crate depends on `model` for its time and id types, and on no other crate of the workspace.

pub mod clock;
pub mod entropy;
pub mod file_lock;
pub mod locks;
pub mod resolver;
pub mod signals;
pub mod stop;
pub mod task;
pub mod tree;

pub use clock::{Clock, Instant, SystemClock, monotonic};
pub use entropy::{Entropy, OsEntropy};
pub use resolver::Resolver;
pub use stop::{Stop, Stopper};
