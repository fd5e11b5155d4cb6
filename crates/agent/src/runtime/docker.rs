//! Docker and Podman, through Docker's API on a Unix socket.
//!
//! A replica is one container, identified by its name and labels, so that a restarted server
//! adopts it. The server restarts containers, not the engine: the two engines differ in their
//! backoff, and neither reports a cause. The next server restarts what exited without one.

mod body;
mod fault;
mod images;
mod inspect;
mod logs;
mod network;
mod options;
mod pull;
mod socket;
mod start;
mod watch;

use base::Instant;
use base::locks::{Locks, lock};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use bollard::query_parameters::{RemoveContainerOptions, StopContainerOptions};
use futures_util::future::BoxFuture;
use model::OrganizationId;
use model::agent::{Observed, ReplicaId};
use model::deployment::Spec;
use model::log::LogsFrom;
use runtime::LogStream;
use tokio::sync::RwLock;

use super::{Images, ObservedFuture, Runtime, started};
use crate::Error;
use fault::is_missing;
use watch::Restarts;

pub use options::Options;

/// Why `disk` is not enforced, and what to do.
const NO_DISK_LIMIT: &str = "`disk` is not enforced: the engine limits it only with the storage \
                             driver overlay2 on xfs mounted with pquota, or btrfs or zfs";

/// The container engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl Engine {
    /// Display name.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::Docker => "Docker",
            Engine::Podman => "Podman",
        }
    }
}

/// The Docker and Podman runtime. Dropping it leaves containers running.
pub struct Docker {
    options: Options,
    api: bollard::Docker,
    engine: Engine,
    version: String,
    /// Architecture of the engine.
    architecture: String,
    socket: PathBuf,
    restarts: Mutex<HashMap<ReplicaId, Restarts>>,
    /// One lock per image, held during its pull; the time of the last pull.
    images: Locks<Option<Instant>>,
    /// Read-locked from the creation of a network to that of its first container; write-locked
    /// by the removal of a network.
    networks: RwLock<()>,
    /// Whether the engine's storage driver can limit the disk of containers: until it refuses.
    has_disk_limit: AtomicBool,
    /// Number of loads since the start: each has its own directory.
    loads: AtomicU64,
}

impl Docker {
    /// Connects to an engine. The error says which sockets were tried and what to do.
    pub async fn probe(options: Options) -> Result<Docker, Error> {
        let found = socket::find(&options).await?;
        Ok(Docker {
            api: found.api,
            engine: found.engine,
            version: found.version,
            architecture: found.architecture,
            socket: found.path,
            restarts: Mutex::default(),
            images: Locks::default(),
            networks: RwLock::default(),
            has_disk_limit: AtomicBool::new(true),
            loads: AtomicU64::new(0),
            options,
        })
    }

    /// Engine, version and socket, for logs.
    pub fn describe(&self) -> String {
        format!("{} {} at {}", self.engine.as_str(), self.version, self.socket.display())
    }

    /// The engine.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Name of a replica's container.
    fn container_name(&self, id: ReplicaId) -> String {
        format!("paddock-{}-{}-{}", self.options.instance, id.deployment, id.number)
    }

    fn restarts(&self) -> MutexGuard<'_, HashMap<ReplicaId, Restarts>> {
        lock(&self.restarts)
    }

    /// Removes a container in any state, and its anonymous volumes. A missing one is not an error.
    async fn remove(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptions { v: true, force: true, link: false };
        match self.api.remove_container(name, Some(options)).await {
            Err(error) if !is_missing(&error) => {
                Err(self.failed("failed to remove the container", &error))
            }
            _ => Ok(()),
        }
    }

    async fn stop_replica(&self, id: ReplicaId) -> Result<(), Error> {
        let name = self.container_name(id);
        let Some(found) = self.find(&name).await? else { return Ok(()) };
        self.check_ours(&found, &name)?;
        let grace = i32::try_from(self.options.stop_grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptions { t: Some(grace), signal: None };
        // A failed stop does not matter: the removal is forced.
        let _ = self.api.stop_container(&name, Some(options)).await;
        self.remove(&name).await?;
        self.remove_unused_network(&found.network).await;
        self.restarts().remove(&id);
        Ok(())
    }
}

impl Runtime for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn start<'a>(
        &'a self,
        id: ReplicaId,
        _node: &'a str,
        organization: Option<OrganizationId>,
        spec: &'a Spec,
    ) -> ObservedFuture<'a> {
        Box::pin(async move { started(self.start_replica(id, organization, spec).await) })
    }

    fn changed<'a>(&'a self, id: ReplicaId, last: &'a Observed) -> ObservedFuture<'a> {
        Box::pin(self.watch(id, last))
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.stop_replica(id))
    }

    fn images(&self) -> Option<&dyn Images> {
        Some(self)
    }

    fn warning(&self) -> Option<String> {
        let is_limited = self.has_disk_limit.load(Ordering::Relaxed);
        (!is_limited).then(|| NO_DISK_LIMIT.to_owned())
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        logs::read(self.api.clone(), self.engine, self.container_name(id), &from, follow)
    }
}
