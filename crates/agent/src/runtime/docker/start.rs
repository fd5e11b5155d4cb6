//! Starting a container, or finding that it runs.

use bollard::errors::Error as EngineError;
use bollard::query_parameters::{CreateContainerOptions, StartContainerOptions};
use model::agent::ReplicaId;
use model::deployment::Spec;

use super::body::{body, made_of, ram_bytes};
use super::found::{Found, State};
use super::watch::Restarts;
use super::{Docker, fault};
use crate::Error;
use crate::reason::not_started;

/// How often a port that was taken at the last moment is replaced by another.
const TRIES: usize = 3;

impl Docker {
    pub(super) async fn start_replica(
        &self,
        id: ReplicaId,
        spec: &Spec,
    ) -> Result<Vec<String>, Error> {
        let image = spec.image.as_deref().ok_or(Error::NoImage)?;
        runtime::check_ram(ram_bytes(spec)).map_err(|error| not_started(error, image))?;
        let name = self.container_name(id);
        if let Some(found) = self.find(&name).await? {
            self.check_ours(&found, &name)?;
            if found.made_of == made_of(spec)
                && let Some(endpoints) = self.adopt(&name, &found).await?
            {
                return Ok(endpoints);
            }
            self.remove(&name).await?;
        }
        self.restarts().insert(id, Restarts::new(&self.options));
        let image = self.image(image).await?;
        let started = self.launch(id, &name, spec, &image).await;
        if started.is_err() {
            self.remove(&name).await?;
        }
        started
    }

    /// Takes what there is as it is. One that ended while nobody looked is started again if it shall.
    async fn adopt(&self, name: &str, found: &Found) -> Result<Option<Vec<String>>, Error> {
        match &found.state {
            State::Created => Ok(None),
            State::Running { endpoints } => Ok(Some(endpoints.clone())),
            State::Ended { code, .. } if found.again(*code) => {
                // If it can't be, a new one is made, which says why it can't.
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
    ) -> Result<Vec<String>, Error> {
        let command = spec.command.first().map(String::as_str);
        let mut tries = 0;
        loop {
            let options =
                CreateContainerOptions { name: Some(name.to_owned()), ..Default::default() };
            let body = body(&self.options, self.engine, id, spec, image);
            let created = self.api.create_container(Some(options), body).await;
            let started = match created {
                Ok(_) => self.run(name).await,
                Err(error) => Err(error),
            };
            tries += 1;
            match started {
                Ok(()) => return self.endpoints(name).await,
                Err(error) if tries < TRIES && is_port_taken(&error) => self.remove(name).await?,
                Err(error) => return Err(self.not_started(&error, command).into()),
            }
        }
    }

    /// Starts a container that is there.
    pub(super) async fn run(&self, name: &str) -> Result<(), EngineError> {
        self.api.start_container(name, None::<StartContainerOptions>).await
    }

    async fn endpoints(&self, name: &str) -> Result<Vec<String>, Error> {
        match self.find(name).await?.map(|found| found.state) {
            Some(State::Running { endpoints }) => Ok(endpoints),
            // It has ended already: who watches it will see that.
            _ => Ok(Vec::new()),
        }
    }
}

fn is_port_taken(error: &EngineError) -> bool {
    let said = fault::innermost(error);
    said.contains("already allocated") || said.contains("address already in use")
}
