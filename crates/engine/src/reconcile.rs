//! What a worker is.

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::work::Next;

/// Brings one kind of subject, one at a time, to where it should be.
///
/// A call gets a key and nothing else. What changed, and why we were woken, is not an input: after a
/// restart nobody could tell us, so the path that needs no telling is the only one.
pub trait Reconcile: Send + Sync + 'static {
    /// The worker's name: the kind of the keys that it is called with.
    const NAME: &'static str;

    /// Looks at the subject and takes the steps that are due.
    fn reconcile(&self, key: &str) -> impl Future<Output = Result<Next, Error>> + Send;
}

/// Why a step was not taken. It will be tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The key is not one of this worker's.
    #[error("{0:?} is no key of this worker")]
    Key(String),
    /// It took longer than a step may take.
    #[error("it took longer than {} s", .0.as_secs())]
    Late(Duration),
    /// The worker has a bug.
    #[error("the worker panicked")]
    Panicked,
}

/// A worker without its type, so that the driver can keep different ones.
pub(crate) trait AnyReconcile: Send + Sync {
    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Next, Error>>;
}

impl<R: Reconcile> AnyReconcile for R {
    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Next, Error>> {
        Box::pin(Reconcile::reconcile(self, key))
    }
}
