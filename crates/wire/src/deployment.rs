//! Deployments and their replicas.

use std::collections::BTreeMap;

use model::reason::Coded as _;
use model::{ClusterId, DeploymentId, OrganizationId, Replica, Resources, Time, deployment};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::amount::Amount;

/// A deployment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Deployment {
    /// Its id.
    #[schema(value_type = String)]
    pub id: DeploymentId,
    /// The organization that it belongs to.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Where it is, or must go; nothing while any cluster will do.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// Its name.
    pub name: String,
    /// What it runs; without one it only holds its capacity.
    pub image: Option<String>,
    /// What each replica needs.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub resources: Resources,
    /// How many run.
    pub replicas: u32,
    /// Higher goes first, and may make lower ones yield.
    pub priority: i64,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// What to run instead of the image's own command.
    pub command: Vec<String>,
    /// The ports that it listens on.
    pub ports: Vec<u16>,
    /// What users wrote on it.
    pub labels: BTreeMap<String, String>,
    /// What happens when its program ends by itself: `never`, `on_failure`, `always`.
    pub restart: String,
    /// How many seconds each replica runs; without limit when there is none.
    pub run_for: Option<u32>,
    /// Labels that the node of each replica (or its cluster) must have.
    pub node_selector: BTreeMap<String, String>,
    /// Must each replica be on another node?
    pub anti_affinity: bool,
    /// Where it is on its way: `queued`, `scheduled`, `starting`, `running`, `preempted`, `failed`,
    /// `completed`, `deleting`.
    pub status: String,
    /// Why it has that status; empty if there is nothing to add.
    pub status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`: for programs, which never read messages.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Where on the cluster it runs.
    pub node: Option<String>,
    /// Where it can be reached.
    pub endpoints: Vec<String>,
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
    /// Since when it runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Time>,
    /// Its replicas, by number; only where one deployment is asked for.
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

/// One replica of a deployment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplicaStatus {
    /// Which; numbers are not used again.
    pub number: u32,
    /// As a deployment's.
    pub status: String,
    /// Why it has that status; empty if there is nothing to add.
    pub status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`: for programs, which never read messages.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// The cluster whose capacity it holds.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// The node whose capacity it holds.
    pub node: Option<String>,
    /// Where it can be reached.
    pub endpoints: Vec<String>,
    /// Since when it runs.
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

/// What waits.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// First in line first: by priority, then by age.
    pub items: Vec<Deployment>,
}

/// A deployment to make.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeployment {
    /// Made from the image when it is left out.
    #[serde(default)]
    pub name: String,
    /// `registry/name:tag`; without one the deployment only holds its capacity.
    pub image: Option<String>,
    /// Where it must run; any cluster with room when it is left out.
    pub cluster_id: Option<String>,
    /// What each replica needs.
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub resources: Resources,
    /// Higher goes first, and may make lower ones yield. 0 when it is left out.
    #[serde(default)]
    pub priority: i64,
    /// How many run; 1 when it is left out.
    #[schema(minimum = 1, maximum = 1000)]
    pub replicas: Option<u32>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What to run instead of the image's own command.
    #[serde(default)]
    pub command: Vec<String>,
    /// The ports that it listens on.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// What users wrote on it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What happens when its program ends by itself: `never`, `on_failure` (when it is left out),
    /// `always`.
    pub restart: Option<String>,
    /// How many seconds each replica runs; then it is completed.
    #[schema(minimum = 1)]
    pub run_for: Option<u32>,
    /// Labels that the node of each replica (or its cluster) must have.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// Must each replica be on another node?
    #[serde(default)]
    pub anti_affinity: bool,
}

/// What of a deployment shall change.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeploymentChange {
    /// Its new name.
    pub name: Option<String>,
    /// Higher goes first, and may make lower ones yield.
    pub priority: Option<i64>,
    /// All its labels from now on.
    pub labels: Option<BTreeMap<String, String>>,
    /// How many run. Those that are too many are stopped, those that are missing are placed.
    #[schema(minimum = 1, maximum = 1000)]
    pub replicas: Option<u32>,
}
