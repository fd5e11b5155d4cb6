//! Adapts the embedded runtime (`crates/runtime`) to replicas.

use std::fs::File;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::OrganizationId;
use model::agent::{Observed, ReplicaId};
use model::deployment::{Reason, Spec};
use model::image::StoredImage;
use model::log::LogsFrom;
use runtime::{Condition, Container, ContainerStatus, Credentials, Embedded, LogStream};

use super::{ImageResult, Images, ObservedFuture, Runtime, limits, started};
use crate::{Error, reason};

impl Runtime for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn start<'a>(
        &'a self,
        id: ReplicaId,
        _node: &'a str,
        organization: Option<OrganizationId>,
        spec: &'a Spec,
    ) -> ObservedFuture<'a> {
        Box::pin(async move {
            let container = match container(id, organization, spec) {
                Ok(container) => container,
                Err(error) => return Observed::Failed { reason: error.into() },
            };
            let endpoints = self.start(&container).await;
            started(endpoints.map_err(|error| reason::not_started(error, &container.image)))
        })
    }

    fn changed<'a>(&'a self, id: ReplicaId, last: &'a Observed) -> ObservedFuture<'a> {
        Box::pin(async move {
            let name = name(id);
            let mut condition = condition(last);
            loop {
                condition = self.changed(&name, &condition).await;
                let now = observed(condition.clone(), self.get(&name));
                if now != *last {
                    return now;
                }
            }
        })
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.stop(&name(id)).await.map_err(|error| Error::Failed(error.to_string()))
        })
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        self.logs(&name(id), &from, follow)
    }

    fn images(&self) -> Option<&dyn Images> {
        Some(self)
    }

    fn warning(&self) -> Option<String> {
        self.warning().map(str::to_owned)
    }

    fn gc_forever(&self, every: Duration, unused_for: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.gc_forever(every, unused_for))
    }
}

impl Images for Embedded {
    fn load<'a>(
        &'a self,
        organization: OrganizationId,
        archive: File,
        name: Option<&'a str>,
    ) -> ImageResult<'a, Vec<StoredImage>> {
        Box::pin(async move {
            let loaded = self.load_images(&organization.to_string(), archive, name).await;
            loaded.map_err(reason::not_loaded)
        })
    }

    fn list(&self, organization: OrganizationId) -> ImageResult<'_, Vec<StoredImage>> {
        Box::pin(async move { Ok(self.stored_images(&organization.to_string()).await) })
    }

    fn delete<'a>(&'a self, organization: OrganizationId, name: &'a str) -> ImageResult<'a, ()> {
        Box::pin(async move {
            let removed = self.remove_image(&organization.to_string(), name).await;
            removed.map_err(reason::not_loaded)
        })
    }
}

/// Name of a replica's container.
fn name(id: ReplicaId) -> String {
    format!("{}-{}", id.deployment, id.number)
}

/// A condition of the same kind. The runtime returns at once if its own is not equal.
fn condition(last: &Observed) -> Condition {
    match last {
        Observed::Running { endpoints } => Condition::Running { endpoints: endpoints.clone() },
        Observed::Restarting { .. } => Condition::Restarting { reason: String::new() },
        _ => Condition::Completed,
    }
}

fn observed(condition: Condition, container: Option<ContainerStatus>) -> Observed {
    match condition {
        Condition::Running { endpoints } => Observed::Running { endpoints },
        Condition::Completed => Observed::Completed,
        Condition::Failed(message) => {
            let lost = Reason::ContainerLost { message };
            Observed::Failed { reason: container.map_or(lost, |container| last(&container)) }
        }
        Condition::Restarting { .. } => {
            let (pause, restarts) = match &container {
                Some(container) if !container.is_lost => {
                    (Some(container.wait_ms), Some(container.restarts))
                }
                _ => (None, None),
            };
            let last = container.map_or_else(shim_killed, |container| last(&container));
            let last = Box::new(last);
            let reason = Reason::CrashLoopBackOff { last, retry_in_ms: pause, restarts };
            Observed::Restarting { reason }
        }
    }
}

/// The last exit of a container.
fn last(container: &ContainerStatus) -> Reason {
    match (container.last_code, &container.last_reason) {
        _ if container.is_lost => shim_killed(),
        (None, Some(message)) => Reason::StartFailed { message: message.clone() },
        (code, _) => reason::exited(code, container.is_oom, container.ram_bytes),
    }
}

fn shim_killed() -> Reason {
    Reason::ContainerLost { message: "its shim was killed".to_owned() }
}

fn container(
    id: ReplicaId,
    organization: Option<OrganizationId>,
    spec: &Spec,
) -> Result<Container, Error> {
    let image = spec.image.clone().ok_or(Error::NoImage)?;
    Ok(Container {
        name: name(id),
        owner: organization.map(|id| id.to_string()),
        image,
        command: spec.command.clone(),
        env: spec.env.clone(),
        ports: spec.ports.clone(),
        // The runtime has the same defaults. Containers of older versions, which had none, are adopted.
        cpu: limits::requested_cpu(&spec.resources),
        ram: limits::requested_ram(&spec.resources),
        disk: limits::disk(&spec.resources),
        restart: spec.restart,
        pull: spec.pull_credentials().map(|own| Credentials {
            username: own.username.clone(),
            password: own.password.clone(),
        }),
    })
}
