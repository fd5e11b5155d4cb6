//! Cluster requests.

use std::collections::BTreeMap;

use model::{Resources, cluster};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::amount::Amount;

/// A cluster to create.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCluster {
    /// Name.
    pub name: String,
    /// Provider: `local` (the server's machine, with the declared capacity), `agent` (a remote
    /// `paddock agent`, with the capacity that it reports), `kubernetes` (an existing Kubernetes
    /// cluster, where the server installs the agent) or `terraform` (created by a Terraform
    /// module).
    pub provider: Option<String>,
    /// Kubernetes settings; with provider `kubernetes`.
    pub kubernetes: Option<NewKubernetes>,
    /// Terraform settings; with provider `terraform`.
    pub terraform: Option<NewTerraform>,
    /// Capacity by resource type; the sum of the nodes, if any are declared. Optional when an agent
    /// reports it.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub capacity: Resources,
    /// Nodes; if omitted, one node with the whole capacity.
    #[serde(default)]
    pub nodes: Vec<NewNode>,
    /// User-defined labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Cloud provider.
    pub cloud_provider: Option<String>,
    /// Region of the cloud provider.
    pub region: Option<String>,
}

/// A node to create.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// Name, unique in the cluster.
    pub name: String,
    /// Capacity by resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub capacity: Resources,
    /// Labels in addition to the cluster's labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl From<NewNode> for cluster::NewNode {
    fn from(node: NewNode) -> Self {
        Self { name: node.name, capacity: node.capacity, labels: node.labels }
    }
}

/// An existing Kubernetes cluster to use as a cluster.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKubernetes {
    /// Kubeconfig, as printed by `kubectl config view --flatten --minify --raw`. Stored encrypted
    /// and never returned. If omitted, the Kubernetes cluster that the server runs in is used,
    /// which only the platform administrator may do.
    pub kubeconfig: Option<String>,
    /// Context of the kubeconfig; defaults to its current context.
    pub context: Option<String>,
    /// Namespace of the agent and its workloads; defaults to `paddock`.
    pub namespace: Option<String>,
    /// Upper limit of the total resource requests in the namespace.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub quota: Option<Resources>,
    /// Registry credentials in the format of Docker's `config.json`. Stored encrypted and never
    /// returned.
    pub pull_secret: Option<String>,
}

/// A Terraform module that creates the cluster.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTerraform {
    /// Module: a subdirectory of the server's module directory.
    pub module: String,
    /// Module variables.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
    /// Secret module variables, stored encrypted and never returned.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub secret_variables: Map<String, Value>,
}

/// Fields to update.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterChange {
    /// New name.
    pub name: Option<String>,
    /// Labels; replaces all existing labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Total capacity, not below the used capacity. Allowed for the platform administrator only.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub capacity: Option<Resources>,
    /// Nodes; replaces all existing nodes. Nodes in use are retained. Allowed for the platform
    /// administrator only.
    pub nodes: Option<Vec<NewNode>>,
    /// Kubernetes settings to update.
    pub kubernetes: Option<KubernetesChange>,
}

/// Kubernetes settings to update.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesChange {
    /// New kubeconfig.
    pub kubeconfig: Option<String>,
    /// New upper limit of the total resource requests in the namespace.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub quota: Option<Resources>,
    /// New registry credentials.
    pub pull_secret: Option<String>,
}
