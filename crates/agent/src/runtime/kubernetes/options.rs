//! What the runtime is told.

use std::path::PathBuf;

/// What the runtime is told.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How Kubernetes is reached; the one that this is a pod of, if nothing is said.
    pub kubeconfig: Option<PathBuf>,
    /// Where deployments go; where the agent is, if nothing is said.
    pub namespace: Option<String>,
    /// The Secret with credentials of registries, if there is one.
    pub pull_secret: Option<String>,
    /// The ClusterRole that the agent gives itself in namespaces of instances; none if it needs none.
    pub instance_role: Option<String>,
}
