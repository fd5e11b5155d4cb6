//! What things are called there, and what is written on them.

use model::DeploymentId;
use model::agent::ReplicaId;
use serde_json::{Value, json};

/// Who applies, as Kubernetes keeps it of every field.
pub(super) const MANAGER: &str = "paddock-agent";
/// Whose things they are.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Which replica a thing belongs to.
pub(super) const REPLICA: &str = "paddock.dev/replica";
/// Which deployment.
pub(super) const DEPLOYMENT: &str = "paddock.dev/deployment";
/// On namespaces of instances: where their agent lives.
pub(super) const HOME: &str = "paddock.dev/home";
/// On a replica's record: tells what it was made of, so that what shall be something else is noticed.
pub(super) const MADE_OF: &str = "paddock.dev/made-of";
/// On a replica's record: what was applied for it, in that order.
pub(super) const OBJECTS: &str = "paddock.dev/objects";
/// The agent's ServiceAccount, and the name on its pods.
pub(super) const AGENT: &str = "paddock-agent";
/// The label with the name of what runs in a pod.
pub(super) const NAME: &str = "app.kubernetes.io/name";

/// A replica's Deployment or Job, and its record.
pub(super) fn of_replica(id: ReplicaId) -> String {
    format!("paddock-{}-{}", id.deployment, id.number)
}

/// A deployment's Service. Names of those begin with a letter.
pub(super) fn of_service(id: DeploymentId) -> String {
    format!("paddock-{id}")
}

/// A replica as the value of a label.
pub(super) fn label(id: ReplicaId) -> String {
    format!("{}.{}", id.deployment, id.number)
}

/// What is written on all that belongs to a replica.
pub(super) fn labels(id: ReplicaId) -> Value {
    json!({MANAGED_BY: "paddock", REPLICA: label(id), DEPLOYMENT: id.deployment.to_string()})
}
