//! Clusters.

pub mod request;

use std::collections::BTreeMap;

use model::reason::StatusReason as _;
use model::{ClusterId, OrganizationId, Resources, Time, cluster};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::amount::{Amount, Capacity, capacities};

/// A cluster.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: ClusterId,
    /// Owning organization; null when shared by all organizations.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Whether all organizations share it.
    pub shared: bool,
    /// Name.
    pub name: String,
    /// One of `accepted`, `provisioning`, `provisioned`, `waiting_for_agent`, `ready`,
    /// `unreachable`, `failed`, `deprovisioning`, `cleanup`.
    pub status: String,
    /// Human-readable reason for the status; empty when there is nothing to add.
    pub status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// How the cluster is provided: `local` (the server's machine), `agent` (a remote `paddock
    /// agent`), `kubernetes` (an existing Kubernetes cluster) or `terraform` (created by a
    /// Terraform module).
    pub provider: String,
    /// Kubernetes settings; only with provider `kubernetes`.
    pub kubernetes: Option<Kubernetes>,
    /// Terraform settings; only with provider `terraform`.
    pub terraform: Option<Terraform>,
    /// Time when draining began, if the cluster is draining. A draining cluster accepts no new
    /// workloads and its workloads move to other clusters.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub draining_at: Option<Time>,
    /// Cloud provider.
    pub cloud_provider: String,
    /// Region of the cloud provider.
    pub region: String,
    /// User-defined labels.
    pub labels: BTreeMap<String, String>,
    /// Last heartbeat of the cluster's remote agent, if it has one.
    pub agent: Option<AgentHeartbeat>,
    /// Capacity by resource type.
    pub capacity: BTreeMap<String, Capacity>,
    /// Nodes. Every replica runs on one of them.
    pub nodes: Vec<Node>,
    /// Number of deployments that run on the cluster or are pinned to it.
    pub deployments: i64,
    /// Incremented by every change of the spec; also the ETag.
    pub generation: i64,
    /// Creator: `user:<id>` or `server`.
    pub created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Time of the last change.
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
            agent: c.agent.map(AgentHeartbeat::from),
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

/// Last heartbeat of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Heard)]
pub struct AgentHeartbeat {
    /// Time of the last heartbeat, accurate to a few seconds.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Agent version.
    pub version: String,
    /// Container runtime.
    pub runtime: String,
}

impl From<cluster::AgentHeartbeat> for AgentHeartbeat {
    fn from(heard: cluster::AgentHeartbeat) -> Self {
        Self { at: heard.at, version: heard.version, runtime: heard.runtime }
    }
}

/// A node of a cluster.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Labels in addition to the cluster's labels.
    pub labels: BTreeMap<String, String>,
    /// Capacity by resource type.
    pub capacity: BTreeMap<String, Capacity>,
}

impl From<cluster::Node> for Node {
    fn from(node: cluster::Node) -> Self {
        Self { name: node.name, labels: node.labels, capacity: capacities(node.capacity) }
    }
}

/// An existing Kubernetes cluster.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Kubernetes {
    /// Context of the kubeconfig.
    pub context: Option<String>,
    /// Namespace of the agent and its workloads.
    pub namespace: String,
    /// Upper limit of the total resource requests in the namespace.
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub quota: Resources,
}

impl From<cluster::Kubernetes> for Kubernetes {
    fn from(k: cluster::Kubernetes) -> Self {
        Self { context: k.context, namespace: k.namespace, quota: k.quota }
    }
}

/// A cluster created by a Terraform module.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Terraform {
    /// Module name.
    pub module: String,
    /// Module variables.
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
    /// Cluster that the token grants access to.
    #[schema(value_type = String)]
    pub cluster_id: ClusterId,
    /// Token for `paddock agent`. Returned only once.
    pub token: String,
}

/// Options for a new agent token.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Seconds during which previous tokens remain valid, from 0 to 604800 (one week). Defaults to
    /// 60.
    pub overlap_secs: Option<u64>,
}
