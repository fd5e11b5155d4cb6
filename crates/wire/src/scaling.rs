//! Cluster pools with autoscaling.

use std::collections::BTreeMap;

use model::{Resources, Time, scaling};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A cluster pool with autoscaling.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Current decision: `grow`, `shrink` or `stay`.
    pub decision: String,
    /// Reason for the decision.
    pub reason: String,
    /// Time of the decision.
    #[schema(value_type = String, format = DateTime)]
    pub since: Time,
    /// Time of the next evaluation if nothing changes before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_look: Option<Time>,
    /// Reason to grow: `waiting`, `largest`, `slack` or `least`.
    pub wish: Option<String>,
    /// Time when the pool last added a cluster.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_grown_at: Option<Time>,
    /// Time when the pool last removed a cluster.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_shrunk_at: Option<Time>,
    /// Whether the pool only reports its decisions without acting on them.
    pub dry_run: bool,
    /// Number of clusters by status.
    pub clusters: BTreeMap<String, usize>,
    /// Used capacity.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub used: Resources,
    /// Free capacity on ready clusters.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub free: Resources,
    /// Capacity held by placeholders, which are preempted immediately.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub reserved: Resources,
    /// Pending requests that fit on no existing cluster but would fit on a new one.
    pub waiting: Vec<PendingRequests>,
    /// Settings.
    pub settings: Settings,
}

/// A group of identical pending requests.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Waits)]
pub struct PendingRequests {
    /// Requested resources of each.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub request: Resources,
    /// Number of requests.
    pub count: usize,
    /// Time since when the oldest one has been pending.
    #[schema(value_type = String, format = DateTime)]
    pub since: Time,
}

/// Settings of a pool.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Settings {
    /// Instance types that the clusters host.
    pub hosts: Vec<HostedType>,
    /// Template of the clusters.
    pub cluster: ClusterTemplate,
    /// Minimum number of clusters.
    pub at_least: u32,
    /// Maximum number of clusters.
    pub at_most: u32,
    /// Used capacity above which the pool does not grow.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub limit: Resources,
    /// Capacity to keep free.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub slack: Resources,
    /// Requests that must each fit on some node at any time.
    #[schema(value_type = Vec<BTreeMap<String, f64>>)]
    pub largest: Vec<Resources>,
    /// Time in seconds that a request must be pending before the pool grows for it.
    pub grow_after_waiting_seconds: u64,
    /// Time in seconds that capacity must be insufficient before the pool grows.
    pub grow_after_seconds: u64,
    /// Minimum time in seconds between a change in one direction and one in the other.
    pub cool_down_seconds: u64,
    /// Time in seconds that a cluster must be empty before it is removed.
    pub idle_for_seconds: u64,
}

/// An instance type that a pool's clusters host.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Hosts)]
pub struct HostedType {
    /// Kind.
    pub kind: String,
    /// Instance type.
    pub r#type: String,
    /// Number of instances for which each cluster reserves capacity in advance.
    pub reserved: u32,
}

/// Template of a pool's clusters.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ClusterTemplate {
    /// Provider.
    pub provider: String,
    /// Cloud provider.
    pub cloud_provider: String,
    /// Region of the cloud provider.
    pub region: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Capacity.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub capacity: Resources,
    /// Number of nodes.
    pub nodes: usize,
}

/// List of pools.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Pools {
    /// Pools in the order of the configuration file.
    pub items: Vec<Pool>,
}

impl From<scaling::PendingWorkloads> for PendingRequests {
    fn from(waiting: scaling::PendingWorkloads) -> Self {
        Self { request: waiting.request, count: waiting.count, since: waiting.since }
    }
}

impl From<scaling::Pool> for Settings {
    fn from(pool: scaling::Pool) -> Self {
        let pace = pool.pace;
        Self {
            hosts: pool.hosts.into_iter().map(HostedType::from).collect(),
            cluster: ClusterTemplate::from(pool.template),
            at_least: pool.at_least,
            at_most: pool.at_most,
            limit: pool.limit,
            slack: pool.slack,
            largest: pool.largest,
            grow_after_waiting_seconds: pace.grow_after_waiting.as_secs(),
            grow_after_seconds: pace.grow_after.as_secs(),
            cool_down_seconds: pace.cool_down.as_secs(),
            idle_for_seconds: pace.idle_for.as_secs(),
        }
    }
}

impl From<scaling::Host> for HostedType {
    fn from(host: scaling::Host) -> Self {
        Self { kind: host.kind, r#type: host.instance_type, reserved: host.reserved }
    }
}

impl From<scaling::Template> for ClusterTemplate {
    fn from(template: scaling::Template) -> Self {
        Self {
            nodes: template.all_nodes().len(),
            provider: template.provider.to_string(),
            cloud_provider: template.cloud_provider,
            region: template.region,
            labels: template.labels,
            capacity: template.capacity,
        }
    }
}
