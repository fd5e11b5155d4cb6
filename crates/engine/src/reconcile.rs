//! The interface of workers.

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::work::Requeue;

/// Reconciles subjects of one kind, one at a time, towards their desired state.
///
/// A call gets only a key. What changed, and why the worker was woken, is not an input: after a
/// restart that is unknown, so the level-triggered path is the only one.
pub trait Reconcile: Send + Sync + 'static {
    /// The worker's name: the kind of the keys that it is called with.
    const NAME: &'static str;

    /// Observes the subject and takes the steps that are due.
    fn reconcile(&self, key: &str) -> impl Future<Output = Result<Requeue, Error>> + Send;
}

/// Why a reconciliation failed. It is retried with backoff.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The key does not belong to this worker.
    #[error("invalid key {0:?} for this worker")]
    Key(String),
    /// The reconciliation timed out.
    #[error("timed out after {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The worker has a bug.
    #[error("the worker panicked")]
    Panicked,
}

/// Type-erased worker, so that the driver can hold different ones.
pub(crate) trait AnyReconcile: Send + Sync {
    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Requeue, Error>>;
}

impl<R: Reconcile> AnyReconcile for R {
    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Requeue, Error>> {
        Box::pin(Reconcile::reconcile(self, key))
    }
}
