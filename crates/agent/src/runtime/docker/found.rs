//! Containers as the engine describes them.

use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as Status};
use bollard::query_parameters::InspectContainerOptions;
use model::deployment::{Reason, Restart};

use super::body::{self, INSTANCE, MADE_OF, PORTS, RESTART};
use super::fault::is_missing;
use super::{Docker, Engine};
use crate::{Error, reason};

/// A container that is there.
pub(super) struct Found {
    pub(super) state: State,
    instance: String,
    pub(super) made_of: String,
    pub(super) restart: Restart,
}

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It never ran.
    Created,
    Running {
        endpoints: Vec<String>,
    },
    Ended {
        code: i64,
        reason: Reason,
    },
}

impl Found {
    /// Shall it be started again after it ended so?
    pub(super) fn again(&self, code: i64) -> bool {
        body::again(self.restart, code)
    }

    fn of(engine: Engine, answer: &ContainerInspectResponse) -> Self {
        let labels = answer.config.as_ref().and_then(|config| config.labels.as_ref());
        let label = |name: &str| labels.and_then(|all| all.get(name)).cloned().unwrap_or_default();
        Self {
            state: state(engine, answer, &label(PORTS)),
            instance: label(INSTANCE),
            made_of: label(MADE_OF),
            restart: label(RESTART).parse().unwrap_or(Restart::Never),
        }
    }
}

impl Docker {
    /// What there is under this name.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Found>, Error> {
        let mut tries = 0;
        loop {
            match self.api.inspect_container(name, None::<InspectContainerOptions>).await {
                Ok(answer) => return Ok(Some(Found::of(self.engine, &answer))),
                Err(error) if is_missing(&error) => return Ok(None),
                // Podman has states in passing that the library does not know.
                Err(EngineError::JsonDataError { .. }) if tries < 50 => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(self.failed("does not say how it is", &error)),
            }
        }
    }

    /// What has our name but is not ours is left alone.
    pub(super) fn check_ours(&self, found: &Found, name: &str) -> Result<(), Error> {
        if found.instance == self.options.instance {
            return Ok(());
        }
        let why =
            format!("There is a container {name} already that paddock has not made: remove it.");
        Err(Error::Conflict(why))
    }
}

fn state(engine: Engine, answer: &ContainerInspectResponse, ports: &str) -> State {
    let Some(state) = &answer.state else { return State::Created };
    match state.status {
        None | Some(Status::EMPTY | Status::CREATED | Status::REMOVING) => State::Created,
        Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING | Status::STOPPING) => {
            State::Running { endpoints: endpoints(answer, ports) }
        }
        Some(Status::EXITED | Status::DEAD) => {
            let code = state.exit_code.unwrap_or(-1);
            let host = answer.host_config.as_ref();
            let limit = host.and_then(|host| host.memory).filter(|ram| *ram > 0);
            // Podman does not always tell who killed.
            let is_likely = engine == Engine::Podman && code == 137 && limit.is_some();
            let is_oom = is_likely || state.oom_killed.unwrap_or(false);
            State::Ended { code, reason: reason::ended(i32::try_from(code).ok(), is_oom, limit) }
        }
    }
}

/// Where its ports can be reached, in the order in which they were asked for.
fn endpoints(answer: &ContainerInspectResponse, ports: &str) -> Vec<String> {
    let published = answer.network_settings.as_ref().and_then(|network| network.ports.as_ref());
    let endpoint = |port: &str| {
        let bindings = published?.get(&format!("{port}/tcp"))?.as_ref()?;
        let host_port = bindings.first()?.host_port.as_ref()?;
        Some(format!("127.0.0.1:{host_port}"))
    };
    ports.split(',').filter_map(endpoint).collect()
}
