//! Configuration of the Kubernetes runtime.

use std::path::PathBuf;

/// Configuration of the Kubernetes runtime.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Path of the kubeconfig; by default the in-cluster configuration.
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of deployments; by default the agent's.
    pub namespace: Option<String>,
    /// Secret with registry credentials, if any.
    pub pull_secret: Option<String>,
    /// ClusterRole that the agent binds to itself in namespaces of instances, if it needs one.
    pub instance_role: Option<String>,
}
