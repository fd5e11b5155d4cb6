//! The one place that starts background tasks: each has a name, and its panic is not silent.

use std::future::Future;

use tokio::task::JoinHandle;
use tracing::Instrument;

/// Starts a task beside the others. It is ended by ending what it waits for, or by its handle.
#[expect(clippy::disallowed_methods, reason = "this is its one place")]
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(tracing::debug_span!("task", task = name)))
}
