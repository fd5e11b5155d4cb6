//! Fleets that grow and shrink by themselves: which clusters may be made, when, and why not.
//!
//! A [`Pool`] is one line of what may grow. [`decide`] is told what there is and says what to do, with
//! its reason; nothing here makes a cluster. Pools come from a file ([`parse_for`]).

mod decide;
mod demand;
mod file;
mod seen;
mod wish;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::cluster::{NewCluster, NewNode, Provider, Settings};
use crate::kind::Kind;
use crate::{Quantity, Resources};

pub use decide::{Action, Decision, MOST_FAILURES, backoff, decide};
pub use demand::{Demand, share};
pub use file::parse_for;
pub use seen::{Memory, Seen, SeenCluster, SeenNode, Waiting};
pub use wish::Wish;

/// One line of what may grow: clusters that are all alike, in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Which instances its clusters are for; none means that they are for deployments only.
    pub hosts: Vec<Host>,
    /// What each of its clusters is like.
    pub template: Template,
    /// So many clusters there are always.
    pub at_least: u32,
    /// So many there may be.
    pub at_most: u32,
    /// When so much is consumed of a resource type, nothing more is made; no limit for what is not named.
    pub limit: Resources,
    /// So much shall always be free.
    pub slack: Resources,
    /// Each of these shall always fit on some node.
    pub largest: Vec<Resources>,
    /// How long it takes its time.
    pub pace: Pace,
    /// Does it only say what it would do?
    pub dry_run: bool,
}

/// How long a pool takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pace {
    /// How long somebody must have waited before a cluster is made for it.
    pub grow_after_waiting: Duration,
    /// How long room must have been missing, though nobody waits, before a cluster is made.
    pub grow_after: Duration,
    /// After a change in one direction there is none in the other for so long.
    pub cool_down: Duration,
    /// How long a cluster must have been empty before it goes.
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

/// A type of instance that a pool's clusters are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Of which kind.
    pub kind: String,
    /// Which type of it.
    pub instance_type: String,
    /// For so many room is held on each cluster before anybody asks.
    pub reserved: u32,
    /// What one of those takes.
    pub room: Resources,
}

/// What each cluster of a pool is like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template {
    /// Who makes and serves it.
    pub provider: Provider,
    /// Where it stands.
    pub cloud_provider: String,
    /// Where there.
    pub region: String,
    /// What is written on it.
    pub labels: BTreeMap<String, String>,
    /// How much it has: the sum of its nodes.
    pub capacity: Resources,
    /// What it is made of; when it is empty, the cluster is one node.
    #[serde(serialize_with = "names_of")]
    pub nodes: Vec<NewNode>,
    /// Does its agent speak as the fleet managers' agents do, and count in units of instance types?
    pub is_foreign: bool,
    /// What its provider is told.
    pub settings: Settings,
}

fn names_of<S: serde::Serializer>(nodes: &[NewNode], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(nodes.iter().map(|node| (&node.name, &node.capacity)))
}

impl Host {
    /// What it is called among reserved ones: `postgres-standard`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.kind, self.instance_type)
    }
}

impl Pool {
    /// What is left of a pool that nobody wants any more: it makes nothing, and its clusters go when
    /// they are empty.
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
    /// A cluster of this kind, as it is asked for.
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

    /// Its nodes; if it declares none, the one that it is.
    pub fn all_nodes(&self) -> Vec<NewNode> {
        self.cluster(String::new()).all_nodes()
    }

    /// Would it fit on a node of such a cluster, were that empty and did it ask for these labels?
    pub fn could_run(&self, request: &Resources, selector: &BTreeMap<String, String>) -> bool {
        let nodes = self.all_nodes();
        nodes.iter().any(|node| request.fits(&node.capacity) && self.has(node, selector))
    }

    fn has(&self, node: &NewNode, selector: &BTreeMap<String, String>) -> bool {
        let of = |key: &str| {
            let own = node.labels.get(key).or_else(|| self.labels.get(key)).map(String::as_str);
            own.or(match key {
                "cloud_provider" => Some(self.cloud_provider.as_str()),
                "region" => Some(self.region.as_str()),
                _ => None,
            })
        };
        selector.iter().all(|(key, value)| of(key) == Some(value.as_str()))
    }

    /// What instances of a type and size take of such a cluster, in what that counts in.
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
    /// The entry for a type of instance, if its clusters are for that.
    pub fn host(&self, kind: &str, instance_type: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.kind == kind && host.instance_type == instance_type)
    }
}

#[cfg(test)]
mod tests;
