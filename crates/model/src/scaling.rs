//! Autoscaling of clusters: when to add or remove one, and why not.
//!
//! A [`Pool`] is a set of identical clusters. [`decide`] maps its observed state to a decision with
//! a reason; nothing here creates a cluster. Pools come from a file ([`parse_for`]).

mod decide;
mod demand;
mod file;
mod need;
mod observed;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::cluster::{NewCluster, NewNode, Provider, Settings};
use crate::kind::Kind;
use crate::{Quantity, Resources};

pub use decide::{Action, Decision, MAX_FAILURES, backoff, decide};
pub use demand::{Demand, share};
pub use file::parse_for;
pub use need::ScaleUpCause;
pub use observed::{Memory, Observed, ObservedCluster, ObservedNode, PendingWorkloads};

/// An autoscaled pool of identical clusters in one region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// The name.
    pub name: String,
    /// Instance types that its clusters host; empty means deployments only.
    pub hosts: Vec<Host>,
    /// Template of its clusters.
    pub template: Template,
    /// Minimum number of clusters.
    pub at_least: u32,
    /// Maximum number of clusters.
    pub at_most: u32,
    /// No cluster is added once the used amount of a resource type reaches its limit.
    pub limit: Resources,
    /// Capacity to keep free.
    pub slack: Resources,
    /// Requests that must always fit on some node.
    pub largest: Vec<Resources>,
    /// Delays.
    pub pace: Pace,
    /// Only report decisions, without executing them?
    pub dry_run: bool,
}

/// Delays of a pool's decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pace {
    /// How long a workload must be pending before a cluster is added for it.
    pub grow_after_waiting: Duration,
    /// How long capacity must be missing, without pending workloads, before a cluster is added.
    pub grow_after: Duration,
    /// Minimum time between a change and one in the opposite direction.
    pub cool_down: Duration,
    /// How long a cluster must be empty before it is removed.
    pub idle_for: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            grow_after_waiting: Duration::ZERO,
            grow_after: Duration::from_secs(30),
            cool_down: Duration::from_mins(10),
            idle_for: Duration::from_mins(10),
        }
    }
}

/// An instance type that a pool's clusters host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The kind.
    pub kind: String,
    /// The instance type.
    pub instance_type: String,
    /// Number of instances for which each cluster reserves capacity in advance.
    pub reserved: u32,
    /// Capacity of one reserved instance.
    pub room: Resources,
}

/// The template of a pool's clusters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template {
    /// The provider.
    pub provider: Provider,
    /// The cloud provider.
    pub cloud_provider: String,
    /// The region.
    pub region: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// Total capacity: the sum of its nodes.
    pub capacity: Resources,
    /// The nodes; if empty, the cluster has one node.
    #[serde(serialize_with = "serialize_nodes")]
    pub nodes: Vec<NewNode>,
    /// Does a third-party agent serve it and count capacity in units of instance types?
    pub is_foreign: bool,
    /// Provider settings.
    pub settings: Settings,
}

fn serialize_nodes<S: serde::Serializer>(nodes: &[NewNode], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(nodes.iter().map(|node| (&node.name, &node.capacity)))
}

impl Host {
    /// Name of its reservations: `postgres-standard`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.kind, self.instance_type)
    }
}

impl Pool {
    /// A pool that was removed from the file: it adds no cluster and removes empty ones.
    pub fn retired(name: &str) -> Self {
        let template = Template {
            provider: Provider::Local,
            cloud_provider: String::new(),
            region: String::new(),
            labels: BTreeMap::new(),
            capacity: Resources::default(),
            nodes: Vec::new(),
            is_foreign: false,
            settings: Settings::None,
        };
        Self {
            name: name.to_owned(),
            hosts: Vec::new(),
            template,
            at_least: 0,
            at_most: 0,
            limit: Resources::default(),
            slack: Resources::default(),
            largest: Vec::new(),
            pace: Pace::default(),
            dry_run: false,
        }
    }
}

impl Template {
    /// The request to create a cluster.
    pub fn cluster(&self, name: String) -> NewCluster {
        NewCluster {
            name,
            provider: self.provider,
            settings: self.settings.clone(),
            cloud_provider: self.cloud_provider.clone(),
            region: self.region.clone(),
            labels: self.labels.clone(),
            capacity: self.capacity.clone(),
            nodes: self.nodes.clone(),
        }
    }

    /// The declared nodes, or the only one.
    pub fn all_nodes(&self) -> Vec<NewNode> {
        self.cluster(String::new()).all_nodes()
    }

    /// Does a request with this selector fit on a node of an empty cluster?
    pub fn could_run(&self, request: &Resources, selector: &BTreeMap<String, String>) -> bool {
        let nodes = self.all_nodes();
        nodes.iter().any(|node| request.fits(&node.capacity) && self.has(node, selector))
    }

    fn has(&self, node: &NewNode, selector: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| {
            let own = node.labels.get(key).or_else(|| self.labels.get(key)).map(String::as_str);
            own.or(match key {
                "cloud_provider" => Some(self.cloud_provider.as_str()),
                "region" => Some(self.region.as_str()),
                _ => None,
            })
        };
        selector.iter().all(|(key, value)| label(key) == Some(value.as_str()))
    }

    /// The request of an instance, in the resource types that the cluster counts.
    pub fn request(
        &self,
        kind: &Kind,
        instance_type: &str,
        units: i64,
        own: &Resources,
    ) -> Resources {
        if self.is_foreign {
            return [(kind.unit(instance_type), Quantity::whole(units))].into_iter().collect();
        }
        own.clone()
    }
}

impl Pool {
    /// The entry of an instance type, if its clusters host it.
    pub fn host(&self, kind: &str, instance_type: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.kind == kind && host.instance_type == instance_type)
    }
}

#[cfg(test)]
mod tests;
