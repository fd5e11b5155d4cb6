//! Docker and Podman, through the socket on which they serve Docker's API.
//!
//! A replica is one container, known by its name and labels: what a server of before has started is
//! found again. Restarts are ours, not the engine's: the two engines differ in when they try again
//! and neither says why. The price is that nothing is restarted while no server runs; it is made up
//! for as soon as one does.

mod body;
mod fault;
mod found;
mod logs;
mod options;
mod pull;
mod socket;
mod start;
mod watch;

use base::Instant;
use base::locks::{Locks, lock};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use bollard::query_parameters::{RemoveContainerOptions, StopContainerOptions};
use futures_util::future::BoxFuture;
use model::agent::{Observed, ReplicaId};
use model::deployment::Spec;
use model::log::LogsFrom;
use runtime::LogStream;

use super::{Doing, Runtime, started};
use crate::Error;
use fault::is_missing;
use watch::Restarts;

pub use options::Options;

/// Which engine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl Engine {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::Docker => "Docker",
            Engine::Podman => "Podman",
        }
    }
}

/// The runtime. Dropping it leaves containers running.
pub struct Docker {
    options: Options,
    api: bollard::Docker,
    engine: Engine,
    version: String,
    /// What the engine runs images for.
    architecture: String,
    socket: PathBuf,
    restarts: Mutex<HashMap<ReplicaId, Restarts>>,
    /// Held while an image is pulled; when it last was.
    images: Locks<Option<Instant>>,
}

impl Docker {
    /// Finds an engine that answers. The error says what was tried and what to do.
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
            options,
        })
    }

    /// Which engine it is, of which version, and where: for people.
    pub fn describe(&self) -> String {
        format!("{} {} at {}", self.engine.as_str(), self.version, self.socket.display())
    }

    /// Which engine it is.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// A replica's container.
    fn container_name(&self, id: ReplicaId) -> String {
        format!("paddock-{}-{}-{}", self.options.instance, id.deployment, id.number)
    }

    fn restarts(&self) -> MutexGuard<'_, HashMap<ReplicaId, Restarts>> {
        lock(&self.restarts)
    }

    /// Removes a container, whatever state it is in, and its anonymous volumes. None there is fine.
    async fn remove(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptions { v: true, force: true, link: false };
        match self.api.remove_container(name, Some(options)).await {
            Err(error) if !is_missing(&error) => {
                Err(self.failed("could not remove the container", &error))
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
        // Whether it stopped or not: what is removed by force is gone.
        let _ = self.api.stop_container(&name, Some(options)).await;
        self.remove(&name).await?;
        self.restarts().remove(&id);
        Ok(())
    }
}

impl Runtime for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn start<'a>(&'a self, id: ReplicaId, _node: &'a str, spec: &'a Spec) -> Doing<'a> {
        Box::pin(async move { started(self.start_replica(id, spec).await) })
    }

    fn changed<'a>(&'a self, id: ReplicaId, seen: &'a Observed) -> Doing<'a> {
        Box::pin(self.watch(id, seen))
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.stop_replica(id))
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        logs::read(self.api.clone(), self.engine, self.container_name(id), &from, follow)
    }
}
