//! The embedded runtime (`crates/runtime`), with replicas instead of containers.

use std::time::Duration;

use futures_util::future::BoxFuture;
use model::agent::{Observed, ReplicaId};
use model::deployment::{Reason, Spec};
use model::log::LogsFrom;
use runtime::{Condition, Container, Embedded, Listed, LogStream};

use super::{Doing, Runtime, limits, started};
use crate::{Error, reason};

impl Runtime for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn start<'a>(&'a self, id: ReplicaId, _node: &'a str, spec: &'a Spec) -> Doing<'a> {
        Box::pin(async move {
            let container = match container(id, spec) {
                Ok(container) => container,
                Err(error) => return Observed::Failed { reason: error.into() },
            };
            let endpoints = self.start(&container).await;
            started(endpoints.map_err(|error| reason::not_started(error, &container.image)))
        })
    }

    fn changed<'a>(&'a self, id: ReplicaId, seen: &'a Observed) -> Doing<'a> {
        Box::pin(async move {
            let name = name(id);
            let mut condition = condition(seen);
            loop {
                condition = self.changed(&name, &condition).await;
                let now = observed(condition.clone(), self.get(&name));
                if now != *seen {
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

    fn gc_forever(&self, every: Duration, unused_for: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.gc_forever(every, unused_for))
    }
}

/// A replica's container.
fn name(id: ReplicaId) -> String {
    format!("{}-{}", id.deployment, id.number)
}

/// A condition of the same kind. The runtime answers at once if it is not the very same one.
fn condition(seen: &Observed) -> Condition {
    match seen {
        Observed::Running { endpoints } => Condition::Running { endpoints: endpoints.clone() },
        Observed::Restarting { .. } => Condition::Restarting { reason: String::new() },
        _ => Condition::Completed,
    }
}

fn observed(condition: Condition, container: Option<Listed>) -> Observed {
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
            let last = container.map_or_else(supervisor_killed, |container| last(&container));
            let last = Box::new(last);
            let reason = Reason::CrashLoopBackOff { last, retry_in_ms: pause, restarts };
            Observed::Restarting { reason }
        }
    }
}

/// How a container ended the last time.
fn last(container: &Listed) -> Reason {
    match (container.last_code, &container.last_reason) {
        _ if container.is_lost => supervisor_killed(),
        (None, Some(message)) => Reason::StartFailed { message: message.clone() },
        (code, _) => {
            let ram_bytes = container.container.ram.map(|ram| ram.milli() / 1000);
            reason::ended(code, container.is_oom, ram_bytes)
        }
    }
}

fn supervisor_killed() -> Reason {
    Reason::ContainerLost { message: "its supervisor was killed, and it with it".to_owned() }
}

fn container(id: ReplicaId, spec: &Spec) -> Result<Container, Error> {
    Ok(Container {
        name: name(id),
        image: spec.image.clone().ok_or(Error::NoImage)?,
        command: spec.command.clone(),
        env: spec.env.clone(),
        ports: spec.ports.clone(),
        cpu: limits::cpu(&spec.resources),
        ram: limits::ram(&spec.resources),
        restart: spec.restart,
    })
}
