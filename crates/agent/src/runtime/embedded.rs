//! The embedded runtime (`crates/runtime`), with replicas instead of containers.

use std::time::Duration;

use futures_util::future::BoxFuture;
use model::agent::ReplicaId;
use model::deployment::Spec;
use model::log::LogsFrom;
use runtime::{Condition, Container, Embedded, LogStream};

use super::{Doing, Runtime, limits};
use crate::Error;

impl Runtime for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn start<'a>(&'a self, id: ReplicaId, _node: &'a str, spec: &'a Spec) -> Doing<'a> {
        Box::pin(async move {
            match container(id, spec) {
                Ok(container) => Condition::after_start(self.start(&container).await),
                Err(error) => Condition::Failed(error.to_string()),
            }
        })
    }

    fn changed<'a>(&'a self, id: ReplicaId, seen: &'a Condition) -> Doing<'a> {
        Box::pin(async move { self.changed(&name(id), seen).await })
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Ok(self.stop(&name(id)).await?) })
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
