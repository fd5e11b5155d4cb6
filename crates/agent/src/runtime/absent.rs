//! Absent runtime, for machines without a working one: fails every replica.

use futures_util::future::{BoxFuture, pending, ready};
use futures_util::{FutureExt, StreamExt, stream};
use model::OrganizationId;
use model::agent::{Observed, ReplicaId};
use model::deployment::{Reason, Spec};
use model::log::LogsFrom;
use runtime::LogStream;

use super::{ObservedFuture, Runtime};
use crate::Error;

/// Fails every replica.
#[derive(Debug, Clone)]
pub struct Absent {
    /// Why no runtime is available, and what to do.
    pub reason: String,
}

impl Runtime for Absent {
    fn name(&self) -> &'static str {
        "absent"
    }

    fn start<'a>(
        &'a self,
        _id: ReplicaId,
        _node: &'a str,
        _organization: Option<OrganizationId>,
        _spec: &'a Spec,
    ) -> ObservedFuture<'a> {
        let reason = Reason::StartFailed { message: self.reason.clone() };
        ready(Observed::Failed { reason }).boxed()
    }

    fn changed<'a>(&'a self, _id: ReplicaId, _last: &'a Observed) -> ObservedFuture<'a> {
        pending().boxed()
    }

    fn stop(&self, _id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        ready(Ok(())).boxed()
    }

    fn logs(&self, _id: ReplicaId, _from: LogsFrom, _follow: bool) -> LogStream {
        stream::empty().boxed()
    }
}
