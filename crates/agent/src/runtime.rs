//! What runs containers.

pub(crate) mod absent;
pub mod docker;
mod embedded;
pub mod kubernetes;
pub(crate) mod limits;
pub(crate) mod logs;
pub mod simulated;

use std::time::Duration;

use futures_util::future::BoxFuture;
use model::agent::{Observed, ReplicaId};
use model::cluster::NewNode;
use model::deployment::{Reason, Spec};
use model::log::LogsFrom;
use runtime::LogStream;

use crate::Error;

/// How a replica is doing, once that is known.
pub type Doing<'a> = BoxFuture<'a, Observed>;

/// Runs containers. Every call can be repeated: it finds its own work of before. Every call can be
/// dropped before it returns: the next one takes up what it has left.
pub trait Runtime: Send + Sync + 'static {
    /// Its name, as users choose it.
    fn name(&self) -> &'static str;

    /// Starts a replica on a node of the cluster, or finds that it runs; how it is doing then.
    fn start<'a>(&'a self, id: ReplicaId, node: &'a str, spec: &'a Spec) -> Doing<'a>;

    /// Returns when it is doing differently than `seen`, which came from `start` or from here.
    fn changed<'a>(&'a self, id: ReplicaId, seen: &'a Observed) -> Doing<'a>;

    /// Stops it and removes all that is left of it.
    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>>;

    /// What it said, and, to who follows, what it says until it ends. Nothing when there is none.
    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream;

    /// Can what it starts be reached? Not if it only pretends.
    fn is_real(&self) -> bool {
        true
    }

    /// Does it see to it by itself that what must answer does before it says that it runs?
    fn asks_itself(&self) -> bool {
        false
    }

    /// The nodes of its cluster and what they have, if it has nodes; nothing while that is not known.
    fn nodes(&self) -> Option<Vec<NewNode>> {
        None
    }

    /// Removes images regularly that nothing has used for a while, as long as it is polled. Only those
    /// of the embedded runtime are ours to remove.
    fn gc_forever(&self, _every: Duration, _unused_for: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// How a replica is doing after an attempt to start it.
fn started(started: Result<Vec<String>, impl Into<Reason>>) -> Observed {
    match started {
        Ok(endpoints) => Observed::Running { endpoints },
        Err(error) => Observed::Failed { reason: error.into() },
    }
}
