//! Inspects containers.

use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as Status};
use bollard::query_parameters::InspectContainerOptions;
use model::deployment::{Reason, Restart};

use super::body::{self, INSTANCE, NETWORK, PORTS, RESTART, SPEC_HASH};
use super::fault::is_missing;
use super::{Docker, Engine};
use crate::{Error, reason};

/// An existing container.
pub(super) struct Existing {
    pub(super) state: State,
    instance: String,
    pub(super) spec_hash: String,
    /// Its network.
    pub(super) network: String,
    pub(super) restart: Restart,
}

/// State of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Never started.
    Created,
    Running {
        endpoints: Vec<String>,
    },
    Ended {
        code: i64,
        reason: Reason,
    },
}

impl Existing {
    /// Whether the restart policy demands a restart after this exit code.
    pub(super) fn is_restarted(&self, code: i64) -> bool {
        body::is_restarted(self.restart, code)
    }

    fn new(engine: Engine, response: &ContainerInspectResponse) -> Self {
        let labels = response.config.as_ref().and_then(|config| config.labels.as_ref());
        let label =
            |name: &str| labels.and_then(|labels| labels.get(name)).cloned().unwrap_or_default();
        Self {
            state: state(engine, response, &label(PORTS)),
            instance: label(INSTANCE),
            spec_hash: label(SPEC_HASH),
            network: label(NETWORK),
            restart: label(RESTART).parse().unwrap_or(Restart::Never),
        }
    }
}

impl Docker {
    /// Inspects the container with this name.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Existing>, Error> {
        let mut tries = 0;
        loop {
            match self.api.inspect_container(name, None::<InspectContainerOptions>).await {
                Ok(response) => return Ok(Some(Existing::new(self.engine, &response))),
                Err(error) if is_missing(&error) => return Ok(None),
                // Podman has transient states that the library does not know.
                Err(EngineError::JsonDataError { .. }) if tries < 50 => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(self.failed("failed to inspect the container", &error)),
            }
        }
    }

    /// Rejects a container of another owner.
    pub(super) fn check_ours(&self, found: &Existing, name: &str) -> Result<(), Error> {
        if found.instance == self.options.instance {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "Container {name} exists but is not managed by paddock: remove it."
        )))
    }
}

fn state(engine: Engine, response: &ContainerInspectResponse, ports: &str) -> State {
    let Some(state) = &response.state else { return State::Created };
    match state.status {
        None | Some(Status::EMPTY | Status::CREATED | Status::REMOVING) => State::Created,
        Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING | Status::STOPPING) => {
            State::Running { endpoints: endpoints(response, ports) }
        }
        Some(Status::EXITED | Status::DEAD) => {
            let code = state.exit_code.unwrap_or(-1);
            let host = response.host_config.as_ref();
            let limit = host.and_then(|host| host.memory).filter(|ram| *ram > 0);
            // Podman does not always report an OOM kill.
            let is_likely = engine == Engine::Podman && code == 137 && limit.is_some();
            let is_oom = is_likely || state.oom_killed.unwrap_or(false);
            State::Ended { code, reason: reason::exited(i32::try_from(code).ok(), is_oom, limit) }
        }
    }
}

/// Endpoints of the published ports, in the order of the spec.
fn endpoints(response: &ContainerInspectResponse, ports: &str) -> Vec<String> {
    let published = response.network_settings.as_ref().and_then(|network| network.ports.as_ref());
    let endpoint = |port: &str| {
        let bindings = published?.get(&format!("{port}/tcp"))?.as_ref()?;
        let host_port = bindings.first()?.host_port.as_ref()?;
        Some(format!("127.0.0.1:{host_port}"))
    };
    ports.split(',').filter_map(endpoint).collect()
}
