//! Starts containers and adopts running ones.

use std::sync::atomic::Ordering;

use bollard::errors::Error as EngineError;
use bollard::query_parameters::{CreateContainerOptions, StartContainerOptions};
use model::OrganizationId;
use model::agent::ReplicaId;
use model::deployment::Spec;

use super::body::{body, ram_bytes, spec_hash};
use super::inspect::{Existing, State};
use super::watch::Restarts;
use super::{Docker, NO_DISK_LIMIT, fault};
use crate::Error;
use crate::reason::not_started;

/// Attempts to start a container whose published port was taken meanwhile.
const MAX_ATTEMPTS: usize = 3;

impl Docker {
    pub(super) async fn start_replica(
        &self,
        id: ReplicaId,
        organization: Option<OrganizationId>,
        spec: &Spec,
    ) -> Result<Vec<String>, Error> {
        let image = spec.image.as_deref().ok_or(Error::NoImage)?;
        runtime::check_ram(Some(ram_bytes(spec))).map_err(|error| not_started(error, image))?;
        let name = self.container_name(id);
        let network = self.network_name(organization);
        if let Some(found) = self.find(&name).await? {
            self.check_ours(&found, &name)?;
            if found.spec_hash == spec_hash(spec, &network)
                && let Some(endpoints) = self.adopt(&name, &found).await?
            {
                return Ok(endpoints);
            }
            self.remove(&name).await?;
        }
        self.restarts().insert(id, Restarts::new(&self.options));
        let image = if runtime::is_local(image) {
            self.local_image(organization, image).await?
        } else {
            self.image(image, spec.pull_credentials()).await?
        };
        let started = self.launch(id, &name, spec, &image, &network).await;
        if started.is_err() {
            self.remove(&name).await?;
            self.remove_unused_network(&network).await;
        }
        started
    }

    /// Adopts a container. One that exited without a server is restarted if its policy demands it.
    async fn adopt(&self, name: &str, found: &Existing) -> Result<Option<Vec<String>>, Error> {
        match &found.state {
            State::Created => Ok(None),
            State::Running { endpoints } => Ok(Some(endpoints.clone())),
            State::Ended { code, .. } if found.is_restarted(*code) => {
                // If that fails, a new container is created, which reports the cause.
                match self.run(name).await {
                    Ok(()) => self.endpoints(name).await.map(Some),
                    Err(_) => Ok(None),
                }
            }
            State::Ended { .. } => Ok(Some(Vec::new())),
        }
    }

    async fn launch(
        &self,
        id: ReplicaId,
        name: &str,
        spec: &Spec,
        image: &str,
        network: &str,
    ) -> Result<Vec<String>, Error> {
        let _lock = self.networks.read().await;
        self.ensure_network(network).await?;
        let command = spec.command.first().map(String::as_str);
        let mut attempts = 0;
        loop {
            let named =
                CreateContainerOptions { name: Some(name.to_owned()), ..Default::default() };
            let has_disk_limit = self.has_disk_limit.load(Ordering::Relaxed);
            let (options, engine) = (&self.options, self.engine);
            let body = body(options, engine, id, spec, image, network, has_disk_limit);
            let created = self.api.create_container(Some(named), body).await;
            let started = match created {
                Ok(_) => self.run(name).await,
                Err(error) => Err(error),
            };
            attempts += 1;
            match started {
                Ok(()) => return self.endpoints(name).await,
                Err(error) if attempts < MAX_ATTEMPTS && is_port_taken(&error) => {
                    self.remove(name).await?;
                }
                Err(error) if has_disk_limit && is_disk_not_limited(&error) => {
                    let cause = fault::innermost(&error);
                    tracing::warn!(cause, "CONTAINERS RUN WITHOUT A DISK LIMIT: {NO_DISK_LIMIT}");
                    self.has_disk_limit.store(false, Ordering::Relaxed);
                    self.remove(name).await?;
                }
                Err(error) => return Err(self.not_started(&error, command).into()),
            }
        }
    }

    /// Starts an existing container.
    pub(super) async fn run(&self, name: &str) -> Result<(), EngineError> {
        self.api.start_container(name, None::<StartContainerOptions>).await
    }

    async fn endpoints(&self, name: &str) -> Result<Vec<String>, Error> {
        match self.find(name).await?.map(|found| found.state) {
            Some(State::Running { endpoints }) => Ok(endpoints),
            // It has exited already, which the watch reports.
            _ => Ok(Vec::new()),
        }
    }
}

/// Whether the engine's storage driver can't limit the size of containers.
fn is_disk_not_limited(error: &EngineError) -> bool {
    let message = fault::innermost(error);
    ["storage-opt", "storage opt", "pquota", "project quota", "overlay.size"]
        .iter()
        .any(|text| message.contains(text))
}

fn is_port_taken(error: &EngineError) -> bool {
    let message = fault::innermost(error);
    message.contains("already allocated") || message.contains("address already in use")
}
