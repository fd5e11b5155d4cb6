//! Background tasks: each has a name in traces.

use std::future::Future;
use std::ops::{Deref, DerefMut};

use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tracing::{Instrument, Span};

/// Starts a background task. Dropping the handle detaches it.
#[expect(clippy::disallowed_methods, reason = "the one place that starts detached tasks")]
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(span(name)))
}

/// A set of background tasks. Dropping the set aborts them.
#[derive(Debug)]
pub struct Tasks<T>(JoinSet<T>);

impl<T: Send + 'static> Tasks<T> {
    /// Starts a task in the set.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts tasks of a set")]
    pub fn spawn<F>(&mut self, name: &'static str, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.0.spawn(future.instrument(span(name)))
    }
}

impl<T> Tasks<T> {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Waits for all tasks and returns their results, in the order in which they ended.
    pub async fn join_all(self) -> Vec<T>
    where
        T: 'static,
    {
        self.0.join_all().await
    }
}

impl<T> Default for Tasks<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Everything but `spawn` is inherited from [`JoinSet`].
impl<T> Deref for Tasks<T> {
    type Target = JoinSet<T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for Tasks<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

fn span(name: &'static str) -> Span {
    tracing::debug_span!("task", task = name)
}
