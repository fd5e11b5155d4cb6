//! The embedded runtime as the agent sees it: replicas instead of containers.

use model::agent::ReplicaId;
use model::deployment::Spec;

use super::{Container, Embedded};
use crate::runtime::logs::{LogStream, LogsFrom};
use crate::runtime::{Condition, NO_IMAGE, Runtime, limits};

impl Runtime for Embedded {
    async fn start(&self, id: ReplicaId, spec: &Spec) -> Result<Vec<String>, String> {
        self.start(&container(id, spec)?).await
    }

    async fn changed(&self, id: ReplicaId, seen: &Condition) -> Condition {
        self.changed(&name(id), seen).await
    }

    async fn stop(&self, id: ReplicaId) -> Result<(), String> {
        self.stop(&name(id)).await
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        self.logs(&name(id), &from, follow)
    }
}

/// A replica's container.
fn name(id: ReplicaId) -> String {
    format!("{}-{}", id.deployment, id.number)
}

fn container(id: ReplicaId, spec: &Spec) -> Result<Container, String> {
    Ok(Container {
        name: name(id),
        image: spec.image.clone().ok_or(NO_IMAGE)?,
        command: spec.command.clone(),
        env: spec.env.clone(),
        ports: spec.ports.clone(),
        cpu: limits::cpu(&spec.resources),
        ram: limits::ram(&spec.resources),
        restart: spec.restart,
    })
}
