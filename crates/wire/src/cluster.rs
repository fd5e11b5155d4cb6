//! Clusters.

pub mod request;

use std::collections::BTreeMap;

use model::reason::Coded as _;
use model::{ClusterId, OrganizationId, Resources, Time, cluster};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::amount::{Amount, Capacity, capacities};

/// A cluster.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    /// Its id.
    #[schema(value_type = String)]
    pub id: ClusterId,
    /// Who owns it; nobody when it is shared by all.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Is it shared by all organizations?
    pub shared: bool,
    /// Its name.
    pub name: String,
    /// Where it is on its way: `accepted`, `provisioning`, `provisioned`, `waiting_for_agent`,
    /// `ready`, `unreachable`, `failed`, `deprovisioning`, `cleanup`.
    pub status: String,
    /// Why it has that status; empty if there is nothing to add.
    pub status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`: for programs, which never read messages.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Who serves it: `local` is this machine; `agent` is whoever runs `paddock agent` beside it;
    /// `kubernetes` is a Kubernetes that there is; `terraform` is what a module makes.
    pub provider: String,
    /// What is known of its Kubernetes, if it is one.
    pub kubernetes: Option<Kubernetes>,
    /// What is known of its Terraform module, if one makes it.
    pub terraform: Option<Terraform>,
    /// Since when it takes nothing new and what is on it moves elsewhere, if it is being drained.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub draining_at: Option<Time>,
    /// Whose machines it stands on.
    pub cloud_provider: String,
    /// Where at the cloud provider it stands.
    pub region: String,
    /// What users wrote on it.
    pub labels: BTreeMap<String, String>,
    /// What its agent last said of itself, if it speaks over the network.
    pub agent: Option<Heard>,
    /// How much it has of each resource type.
    pub capacity: BTreeMap<String, Capacity>,
    /// What it is made of. What runs, runs on one of them.
    pub nodes: Vec<Node>,
    /// How many deployments are on it or pinned to it.
    pub deployments: i64,
    /// Counts the changes of what users set; also its ETag.
    pub generation: i64,
    /// Who made it: `user:<id>` or `server`.
    pub created_by: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Time,
}

impl From<cluster::Cluster> for Cluster {
    fn from(c: cluster::Cluster) -> Self {
        let (kubernetes, terraform) = match c.settings {
            cluster::Settings::None => (None, None),
            cluster::Settings::Kubernetes(kubernetes) => (Some(kubernetes.into()), None),
            cluster::Settings::Terraform(terraform) => (None, Some(terraform.into())),
        };
        Self {
            id: c.id,
            organization_id: c.organization_id,
            shared: c.organization_id.is_none(),
            name: c.name,
            status: c.status.to_string(),
            status_reason: c.reason.to_string(),
            reason_code: c.reason.code().to_owned(),
            provider: c.provider.to_string(),
            kubernetes,
            terraform,
            draining_at: c.draining_at,
            cloud_provider: c.cloud_provider,
            region: c.region,
            labels: c.labels,
            agent: c.agent.map(Heard::from),
            capacity: capacities(c.capacity),
            nodes: c.nodes.into_iter().map(Node::from).collect(),
            deployments: c.deployments,
            generation: c.generation,
            created_by: c.created_by,
            created_at: c.created_at,
            updated_at: c.updated_at,
        }
    }
}

/// What an agent last said of itself.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Heard {
    /// When it last spoke, give or take a few seconds.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Its version.
    pub version: String,
    /// What it runs containers with.
    pub runtime: String,
}

impl From<cluster::Heard> for Heard {
    fn from(heard: cluster::Heard) -> Self {
        Self { at: heard.at, version: heard.version, runtime: heard.runtime }
    }
}

/// A part of a cluster.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What is written on it, beside its cluster's labels.
    pub labels: BTreeMap<String, String>,
    /// How much it has of each resource type.
    pub capacity: BTreeMap<String, Capacity>,
}

impl From<cluster::Node> for Node {
    fn from(node: cluster::Node) -> Self {
        Self { name: node.name, labels: node.labels, capacity: capacities(node.capacity) }
    }
}

/// A Kubernetes that there is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Kubernetes {
    /// Which context of its kubeconfig.
    pub context: Option<String>,
    /// Where the agent and what it runs live.
    pub namespace: String,
    /// The most that what runs there may ask for together.
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub quota: Resources,
}

impl From<cluster::Kubernetes> for Kubernetes {
    fn from(k: cluster::Kubernetes) -> Self {
        Self { context: k.context, namespace: k.namespace, quota: k.quota }
    }
}

/// What a Terraform module makes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Terraform {
    /// The module.
    pub module: String,
    /// Its variables.
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
}

impl From<cluster::Terraform> for Terraform {
    fn from(t: cluster::Terraform) -> Self {
        Self { module: t.module, variables: t.variables }
    }
}

/// A token for a cluster's agent.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct ClusterToken {
    /// The cluster that it is good for.
    #[schema(value_type = String)]
    pub cluster_id: ClusterId,
    /// Give it to `paddock agent`. It is shown only here.
    pub token: String,
}

/// How a new token comes to be.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// For how many seconds those of before are still good, from 0 to 604800 (a week); 60 by default.
    pub overlap_secs: Option<u64>,
}
