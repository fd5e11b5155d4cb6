//! Pools: clusters that grow and shrink by themselves.

use std::collections::BTreeMap;

use model::{Resources, Time, scaling};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool of clusters that grows and shrinks by itself.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// What it does now: `grow`, `shrink`, `stay`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// Since when it is decided so.
    #[schema(value_type = String, format = DateTime)]
    pub since: Time,
    /// When it is looked at again, should nothing change before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_look: Option<Time>,
    /// Why it would like to grow: `waiting`, `largest`, `slack`, `least`.
    pub wish: Option<String>,
    /// When it last made a cluster.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_grown_at: Option<Time>,
    /// When it last removed one.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_shrunk_at: Option<Time>,
    /// Does it only say what it would do?
    pub dry_run: bool,
    /// How many clusters it has, by status.
    pub clusters: BTreeMap<String, usize>,
    /// What is consumed of its clusters.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub used: Resources,
    /// What is free on those that are ready.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub free: Resources,
    /// What only holds room on them, and yields at once.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub reserved: Resources,
    /// Who waits for it: fits nowhere now, and would on a new cluster.
    pub waiting: Vec<Waits>,
    /// What is set.
    pub settings: Settings,
}

/// Some who wait, alike.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Waits {
    /// What each of them asks for.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub request: Resources,
    /// How many they are.
    pub count: usize,
    /// Since when the first of them waits.
    #[schema(value_type = String, format = DateTime)]
    pub since: Time,
}

/// What is set of a pool.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Settings {
    /// Which instances its clusters are for.
    pub hosts: Vec<Hosts>,
    /// What each of its clusters is like.
    pub cluster: ClusterTemplate,
    /// So many clusters there are always.
    pub at_least: u32,
    /// So many there may be.
    pub at_most: u32,
    /// When so much is consumed, nothing more is made.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub limit: Resources,
    /// So much shall always be free.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub slack: Resources,
    /// Each of these shall always fit on some node.
    #[schema(value_type = Vec<BTreeMap<String, f64>>)]
    pub largest: Vec<Resources>,
    /// How long somebody must have waited before a cluster is made for it.
    pub grow_after_waiting_seconds: u64,
    /// How long room must have been missing before a cluster is made.
    pub grow_after_seconds: u64,
    /// After a change in one direction there is none in the other for so long.
    pub cool_down_seconds: u64,
    /// How long a cluster must have been empty before it goes.
    pub idle_for_seconds: u64,
}

/// A type of instance that a pool's clusters are for.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Hosts {
    /// Of which kind.
    pub kind: String,
    /// Which type of it.
    pub r#type: String,
    /// For so many room is held on each cluster before anybody asks.
    pub reserved: u32,
}

/// What each cluster of a pool is like.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ClusterTemplate {
    /// Who makes and serves it.
    pub provider: String,
    /// Whose machines it stands on.
    pub cloud_provider: String,
    /// Where at the cloud provider it stands.
    pub region: String,
    /// What is written on it.
    pub labels: BTreeMap<String, String>,
    /// How much it has.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub capacity: Resources,
    /// How many nodes that is.
    pub nodes: usize,
}

/// All pools.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Pools {
    /// In the order of the file.
    pub items: Vec<Pool>,
}

impl From<scaling::Waiting> for Waits {
    fn from(waiting: scaling::Waiting) -> Self {
        Self { request: waiting.request, count: waiting.count, since: waiting.since }
    }
}

impl From<scaling::Pool> for Settings {
    fn from(pool: scaling::Pool) -> Self {
        let pace = pool.pace;
        Self {
            hosts: pool.hosts.into_iter().map(Hosts::from).collect(),
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

impl From<scaling::Host> for Hosts {
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
