//! What things are called there, and what is written on them.

use model::operation::Subject;

/// Who applies, as Kubernetes keeps it of every field.
pub(super) const MANAGER: &str = "paddock";
/// Whose things they are.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "paddock");
/// Which cluster of Paddock a thing belongs to.
pub(super) const CLUSTER: &str = "paddock.dev/cluster";
/// On namespaces that Paddock has made itself, and may remove.
pub(super) const MADE: &str = "paddock.dev/made";
/// On namespaces of instances: where their agent lives.
pub(super) const HOME: &str = "paddock.dev/home";
/// On all that an agent runs.
pub(super) const REPLICA: &str = "paddock.dev/replica";

/// The agent's Deployment, ServiceAccount, Role and so on.
pub(super) const AGENT: &str = "paddock-agent";
/// The label that selects the agent's pods.
pub(super) const NAME: &str = "app.kubernetes.io/name";
/// The Secret with credentials of registries.
pub(super) const PULL: &str = "paddock-pull";
/// The ResourceQuota and the LimitRange.
pub(super) const QUOTA: &str = "paddock";

/// What the agent may do everywhere.
pub(super) fn everywhere(id: Subject) -> String {
    format!("paddock-{id}")
}

/// What the agent may do in namespaces of instances.
pub(super) fn instances(id: Subject) -> String {
    format!("paddock-{id}-instances")
}
