//! Requests about clusters.

use std::collections::BTreeMap;

use model::{Resources, cluster};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::amount::Amount;

/// A cluster to make.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCluster {
    /// Its name.
    pub name: String,
    /// `local`: this machine serves it, with the capacity that is declared here. `agent`: whoever
    /// runs `paddock agent` beside it, with the capacity that the agent reports. `kubernetes`: a
    /// Kubernetes that there is; the agent is installed there. `terraform`: what a module makes.
    pub provider: Option<String>,
    /// With provider `kubernetes`: how it is reached, and what of it may be used.
    pub kubernetes: Option<NewKubernetes>,
    /// With provider `terraform`: the module and its variables.
    pub terraform: Option<NewTerraform>,
    /// How much it has of each resource type; the sum of its nodes, if it has any. May be left out
    /// when an agent will report it.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub capacity: Resources,
    /// What it is made of; one node that has all the capacity when it is left out.
    #[serde(default)]
    pub nodes: Vec<NewNode>,
    /// What users wrote on it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whose machines it stands on.
    pub cloud_provider: Option<String>,
    /// Where at the cloud provider it stands.
    pub region: Option<String>,
}

/// A part of a cluster to make.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// Its name, unique in its cluster.
    pub name: String,
    /// How much it has of each resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub capacity: Resources,
    /// What is written on it, beside its cluster's labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl From<NewNode> for cluster::NewNode {
    fn from(node: NewNode) -> Self {
        Self { name: node.name, capacity: node.capacity, labels: node.labels }
    }
}

/// A Kubernetes that there is, as a new cluster.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKubernetes {
    /// How it is reached, as `kubectl config view --flatten --minify --raw` shows it; it is kept
    /// encrypted and never shown. Without it, it is the Kubernetes that the server runs in, which is
    /// the platform administrator's to give.
    pub kubeconfig: Option<String>,
    /// Which context of it; its current one when it is left out.
    pub context: Option<String>,
    /// Where the agent and what it runs live; `paddock` when it is left out.
    pub namespace: Option<String>,
    /// The most that what runs there may ask for together.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub quota: Option<Resources>,
    /// Credentials of registries, as in Docker's `config.json`; kept encrypted and never shown.
    pub pull_secret: Option<String>,
}

/// What a Terraform module makes, as a new cluster.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTerraform {
    /// The module: a folder in the server's directory of modules.
    pub module: String,
    /// Its variables.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
    /// More variables, kept encrypted and never shown.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub secret_variables: Map<String, Value>,
}

/// What of a cluster shall change.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterChange {
    /// Its new name.
    pub name: Option<String>,
    /// All its labels from now on.
    pub labels: Option<BTreeMap<String, String>>,
    /// New totals, never below what is used; by the platform administrator only.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub capacity: Option<Resources>,
    /// All its nodes from now on; by the platform administrator only. What is in use stays.
    pub nodes: Option<Vec<NewNode>>,
    /// What of its Kubernetes shall change.
    pub kubernetes: Option<KubernetesChange>,
}

/// What of a Kubernetes shall change.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesChange {
    /// How it is reached from now on.
    pub kubeconfig: Option<String>,
    /// The most that what runs there may ask for together from now on.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    pub quota: Option<Resources>,
    /// Credentials of registries from now on.
    pub pull_secret: Option<String>,
}
