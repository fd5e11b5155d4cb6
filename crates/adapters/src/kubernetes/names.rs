//! Names, labels and annotations of Paddock's objects.

use model::operation::Subject;

/// The field manager of server-side apply.
pub(super) const MANAGER: &str = "paddock";
/// The label of all objects of Paddock.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "paddock");
/// The label with the id of the Paddock cluster.
pub(super) const CLUSTER: &str = "paddock.dev/cluster";
/// The fencing token of the server that wrote an object last.
pub(super) const FENCE: &str = "paddock.dev/fence";
/// The annotation of namespaces that Paddock created and may delete.
pub(super) const MADE: &str = "paddock.dev/made";
/// The label of instance namespaces with the namespace of their agent.
pub(super) const HOME: &str = "paddock.dev/home";
/// The label of all objects that an agent runs.
pub(super) const REPLICA: &str = "paddock.dev/replica";

/// The name of the agent's Deployment, ServiceAccount, Role and so on.
pub(super) const AGENT: &str = "paddock-agent";
/// The label that selects the agent's pods.
pub(super) const NAME: &str = "app.kubernetes.io/name";
/// The Secret with registry credentials.
pub(super) const PULL: &str = "paddock-pull";
/// The ResourceQuota and the LimitRange.
pub(super) const QUOTA: &str = "paddock";

/// The ClusterRole with the agent's cluster-wide permissions.
pub(super) fn everywhere(id: Subject) -> String {
    format!("paddock-{id}")
}

/// The ClusterRole with the agent's permissions in instance namespaces.
pub(super) fn instances(id: Subject) -> String {
    format!("paddock-{id}-instances")
}
