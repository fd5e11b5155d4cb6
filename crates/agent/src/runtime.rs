//! Container runtimes.

pub(crate) mod absent;
pub mod docker;
mod embedded;
pub mod kubernetes;
pub(crate) mod limits;
pub(crate) mod logs;
pub mod simulated;

use std::fs::File;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::OrganizationId;
use model::agent::{Observed, ReplicaId};
use model::cluster::NewNode;
use model::deployment::{Reason, Spec};
use model::image::{StoreError, StoredImage};
use model::log::LogsFrom;
use runtime::LogStream;

use crate::Error;

/// A future observed state of a replica.
pub type ObservedFuture<'a> = BoxFuture<'a, Observed>;

/// A container runtime. Every call is idempotent and may be cancelled: the next one resumes it.
pub trait Runtime: Send + Sync + 'static {
    /// Name, as users select it.
    fn name(&self) -> &'static str;

    /// Starts a replica on a node of the cluster, or adopts a running one. The replica can use the
    /// loaded images of its organization.
    fn start<'a>(
        &'a self,
        id: ReplicaId,
        node: &'a str,
        organization: Option<OrganizationId>,
        spec: &'a Spec,
    ) -> ObservedFuture<'a>;

    /// Returns when the observed state differs from `last`, which `start` or this call returned.
    fn changed<'a>(&'a self, id: ReplicaId, last: &'a Observed) -> ObservedFuture<'a>;

    /// Stops a replica and removes its containers and files.
    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>>;

    /// Streams a replica's log; with `follow`, until it ends. Empty if there is none.
    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream;

    /// Whether replicas can be reached. False for simulated ones.
    fn is_real(&self) -> bool {
        true
    }

    /// Whether the runtime runs readiness checks itself, before it reports a replica as running.
    fn checks_readiness(&self) -> bool {
        false
    }

    /// Nodes of the cluster with their capacity, if it has nodes; none until they are known.
    fn nodes(&self) -> Option<Vec<NewNode>> {
        None
    }

    /// Why replicas are less isolated than they could be, for the administrator.
    fn warning(&self) -> Option<String> {
        None
    }

    /// The image store, if images can be loaded without a registry.
    fn images(&self) -> Option<&dyn Images> {
        None
    }

    /// Removes unused images periodically; never returns. Only the embedded runtime does so: images
    /// of other engines have other users.
    fn gc_forever(&self, _every: Duration, _unused_for: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// Result of an operation on an image store.
pub type ImageResult<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A store of images that were loaded without a registry. Each belongs to one organization.
pub trait Images: Send + Sync {
    /// Loads all images of an archive. `name` replaces the name in an archive with one image.
    fn load<'a>(
        &'a self,
        organization: OrganizationId,
        archive: File,
        name: Option<&'a str>,
    ) -> ImageResult<'a, Vec<StoredImage>>;

    /// The organization's images and the built-in one.
    fn list(&self, organization: OrganizationId) -> ImageResult<'_, Vec<StoredImage>>;

    /// Deletes an image of the organization that no container uses.
    fn delete<'a>(&'a self, organization: OrganizationId, name: &'a str) -> ImageResult<'a, ()>;
}

/// The observed state after an attempt to start a replica.
fn started(started: Result<Vec<String>, impl Into<Reason>>) -> Observed {
    match started {
        Ok(endpoints) => Observed::Running { endpoints },
        Err(error) => Observed::Failed { reason: error.into() },
    }
}
