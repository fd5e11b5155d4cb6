//! Deployments and their replicas.

use std::collections::BTreeMap;

use model::reason::StatusReason as _;
use model::{ClusterId, DeploymentId, OrganizationId, Replica, Resources, Time, deployment};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::amount::Amount;

/// A deployment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Deployment {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: DeploymentId,
    /// Owning organization.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Cluster that hosts the deployment or that it is pinned to; null while any cluster is
    /// eligible.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// Name.
    pub name: String,
    /// Container image; without one, the deployment only reserves capacity.
    pub image: Option<String>,
    /// Resources of each replica.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub resources: Resources,
    /// Number of replicas.
    pub replicas: u32,
    /// Priority. Higher values are placed first and may preempt lower ones.
    pub priority: i64,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Command that replaces the image's command.
    pub command: Vec<String>,
    /// Ports that the container listens on.
    pub ports: Vec<u16>,
    /// User-defined labels.
    pub labels: BTreeMap<String, String>,
    /// Restart policy when the container exits: `never`, `on_failure` or `always`.
    pub restart: String,
    /// Run time of each replica in seconds; null for no limit.
    pub run_for: Option<u32>,
    /// Labels that each replica's node or its cluster must have.
    pub node_selector: BTreeMap<String, String>,
    /// Whether every replica must run on a different node.
    pub anti_affinity: bool,
    /// One of `queued`, `scheduled`, `starting`, `running`, `preempted`, `failed`, `completed`,
    /// `deleting`.
    pub status: String,
    /// Human-readable reason for the status; empty when there is nothing to add.
    pub status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Node that hosts the deployment.
    pub node: Option<String>,
    /// Addresses where it can be reached.
    pub endpoints: Vec<String>,
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
    /// Time when it started running.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Time>,
    /// Replicas, ordered by number; only when a single deployment is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_statuses: Option<Vec<ReplicaStatus>>,
}

impl From<deployment::Deployment> for Deployment {
    fn from(d: deployment::Deployment) -> Self {
        Self {
            id: d.id,
            organization_id: d.organization_id,
            cluster_id: d.cluster_id(),
            name: d.name,
            image: d.spec.image,
            resources: d.spec.resources,
            replicas: d.spec.replicas,
            priority: d.priority,
            env: d.spec.env,
            command: d.spec.command,
            ports: d.spec.ports,
            labels: d.labels,
            restart: d.spec.restart.to_string(),
            run_for: d.spec.run_for,
            node_selector: d.spec.node_selector,
            anti_affinity: d.spec.anti_affinity,
            status: d.status.to_string(),
            status_reason: d.reason.to_string(),
            reason_code: d.reason.code().to_owned(),
            node: d.node,
            endpoints: d.endpoints,
            generation: d.generation,
            created_by: d.created_by,
            created_at: d.created_at,
            updated_at: d.updated_at,
            started_at: d.started_at,
            replica_statuses: None,
        }
    }
}

/// A replica of a deployment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplicaStatus {
    /// Replica number; never reused.
    pub number: u32,
    /// Status; same values as for deployments.
    pub status: String,
    /// Human-readable reason for the status; empty when there is nothing to add.
    pub status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Cluster whose capacity the replica holds.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// Node whose capacity the replica holds.
    pub node: Option<String>,
    /// Addresses where it can be reached.
    pub endpoints: Vec<String>,
    /// Time when it started running.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Time>,
}

impl From<Replica> for ReplicaStatus {
    fn from(replica: Replica) -> Self {
        let (cluster_id, node) =
            replica.place.map(|place| (place.cluster, place.node.to_string())).unzip();
        Self {
            number: replica.id.number,
            status: replica.status.to_string(),
            status_reason: replica.reason.to_string(),
            reason_code: replica.reason.code().to_owned(),
            cluster_id,
            node,
            endpoints: replica.endpoints,
            started_at: replica.started_at,
        }
    }
}

/// Pending deployments.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Deployments in queue order: by priority, then by age.
    pub items: Vec<Deployment>,
}

/// A deployment to create.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeployment {
    /// Name; derived from the image if omitted.
    #[serde(default)]
    pub name: String,
    /// Container image, `registry/name:tag`; without one, the deployment only reserves capacity.
    pub image: Option<String>,
    /// Cluster to run on; any cluster with free capacity if omitted.
    pub cluster_id: Option<String>,
    /// Resources of each replica; with an image, 100m `cpu` and 64Mi `ram` if omitted.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub resources: Resources,
    /// Priority. Higher values are placed first and may preempt lower ones. Defaults to 0.
    #[serde(default)]
    pub priority: i64,
    /// Number of replicas; defaults to 1.
    #[schema(minimum = 1, maximum = 1000)]
    pub replicas: Option<u32>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Command that replaces the image's command.
    #[serde(default)]
    pub command: Vec<String>,
    /// Ports that the container listens on.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// User-defined labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Restart policy when the container exits: `never`, `on_failure` (the default) or `always`.
    pub restart: Option<String>,
    /// Run time of each replica in seconds, after which it completes.
    #[schema(minimum = 1)]
    pub run_for: Option<u32>,
    /// Labels that each replica's node or its cluster must have.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// Whether every replica must run on a different node.
    #[serde(default)]
    pub anti_affinity: bool,
}

/// Fields to update.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeploymentChange {
    /// New name.
    pub name: Option<String>,
    /// Priority. Higher values are placed first and may preempt lower ones.
    pub priority: Option<i64>,
    /// Labels; replaces all existing labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Number of replicas. Excess replicas are stopped, missing ones are placed.
    #[schema(minimum = 1, maximum = 1000)]
    pub replicas: Option<u32>,
}
