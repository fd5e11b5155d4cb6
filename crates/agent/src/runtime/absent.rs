//! No runtime: for machines on which none works. Says so, for every image.

use futures_util::future::{BoxFuture, pending, ready};
use futures_util::{FutureExt, StreamExt, stream};
use model::agent::{Observed, ReplicaId};
use model::deployment::{Reason, Spec};
use model::log::LogsFrom;
use runtime::LogStream;

use super::{Doing, Runtime};
use crate::Error;

/// Runs nothing.
#[derive(Debug, Clone)]
pub struct Absent {
    /// Why there is none, and what to do about it.
    pub reason: String,
}

impl Runtime for Absent {
    fn name(&self) -> &'static str {
        "absent"
    }

    fn start<'a>(&'a self, _id: ReplicaId, _node: &'a str, _spec: &'a Spec) -> Doing<'a> {
        let reason = Reason::StartFailed { message: self.reason.clone() };
        ready(Observed::Failed { reason }).boxed()
    }

    fn changed<'a>(&'a self, _id: ReplicaId, _seen: &'a Observed) -> Doing<'a> {
        pending().boxed()
    }

    fn stop(&self, _id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        ready(Ok(())).boxed()
    }

    fn logs(&self, _id: ReplicaId, _from: LogsFrom, _follow: bool) -> LogStream {
        stream::empty().boxed()
    }
}
