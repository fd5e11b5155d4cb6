//! Names and labels of objects.

use model::DeploymentId;
use model::agent::ReplicaId;
use serde_json::{Value, json};

/// Field manager.
pub(super) const MANAGER: &str = "paddock-agent";
/// Label: the managing tool.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label: the replica.
pub(super) const REPLICA: &str = "paddock.dev/replica";
/// Label: the deployment.
pub(super) const DEPLOYMENT: &str = "paddock.dev/deployment";
/// Label of an instance's namespace: the namespace of its agent.
pub(super) const HOME_NAMESPACE: &str = "paddock.dev/home";
/// Annotation of a replica's record: hash of the spec, to detect changes.
pub(super) const SPEC_HASH: &str = "paddock.dev/made-of";
/// Annotation of a replica's record: its objects, in the order of their creation.
pub(super) const OBJECTS: &str = "paddock.dev/objects";
/// The agent's ServiceAccount, and the name label of its pods.
pub(super) const AGENT: &str = "paddock-agent";
/// Label: the application in a pod.
pub(super) const NAME: &str = "app.kubernetes.io/name";

/// Name of a replica's Deployment or Job, and of its record.
pub(super) fn of_replica(id: ReplicaId) -> String {
    format!("paddock-{}-{}", id.deployment, id.number)
}

/// Name of the Secret with the registry credentials of a replica's organization.
pub(super) fn of_pull_secret(id: ReplicaId) -> String {
    format!("{}-pull", of_replica(id))
}

/// Name of a deployment's Service. It must begin with a letter.
pub(super) fn of_service(id: DeploymentId) -> String {
    format!("paddock-{id}")
}

/// A replica as a label value.
pub(super) fn label(id: ReplicaId) -> String {
    format!("{}.{}", id.deployment, id.number)
}

/// Labels of all objects of a replica.
pub(super) fn labels(id: ReplicaId) -> Value {
    json!({MANAGED_BY: "paddock", REPLICA: label(id), DEPLOYMENT: id.deployment.to_string()})
}
