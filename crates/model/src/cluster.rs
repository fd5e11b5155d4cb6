//! Clusters: data planes with capacity.

mod hosting;
mod provider;
mod reason;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::invalid::Check;
use crate::reason::Coded;
use crate::text_enum::text_enum;
use crate::{ClusterId, Invalid, OrganizationId, Quantity, Resources, Time, name};

pub use hosting::{Misreport, NOT_READY_LIMIT, Readiness, readiness, sorted_versions};
pub use provider::{
    AGENT_TOKEN, KUBECONFIG, Kubernetes, PULL_SECRET, Provider, STATE, Settings, Terraform,
    VARIABLES,
};
pub use reason::Reason;
pub use step::{Ask, Patience, Step, Voice, done, next_step};

/// Where a cluster is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Asked for.
    Accepted,
    /// Its provider makes it.
    Provisioning,
    /// It exists.
    Provisioned,
    /// It has what hosting needs; its agent has not spoken yet.
    WaitingForAgent,
    /// It can host.
    Ready,
    /// Its agent is silent: what runs there is not known.
    Unreachable,
    /// It can't be made; the reason says why.
    Failed,
    /// It shall go.
    Deprovisioning,
    /// Its provider is done; what we made around it goes.
    Cleanup,
}

text_enum!(Status {
    Accepted => "accepted",
    Provisioning => "provisioning",
    Provisioned => "provisioned",
    WaitingForAgent => "waiting_for_agent",
    Ready => "ready",
    Unreachable => "unreachable",
    Failed => "failed",
    Deprovisioning => "deprovisioning",
    Cleanup => "cleanup",
});

impl Status {
    /// May a cluster go from here to `next`?
    pub fn may_become(self, next: Status) -> bool {
        use Status::{
            Accepted, Cleanup, Deprovisioning, Failed, Provisioned, Provisioning, Ready,
            Unreachable, WaitingForAgent,
        };
        match self {
            Accepted => matches!(next, Provisioning | Failed | Deprovisioning),
            Provisioning => matches!(next, Provisioned | Failed | Deprovisioning),
            Provisioned => matches!(next, WaitingForAgent | Failed | Deprovisioning),
            WaitingForAgent => matches!(next, Ready | Failed | Deprovisioning),
            Ready => matches!(next, WaitingForAgent | Unreachable | Failed | Deprovisioning),
            Unreachable => matches!(next, Ready | Deprovisioning),
            Failed => matches!(next, Accepted | Deprovisioning),
            Deprovisioning => next == Cleanup,
            Cleanup => false,
        }
    }

    /// Is it on its way to `ready` for the first time, so that a user can cancel that?
    pub fn is_provisioning(self) -> bool {
        use Status::{Accepted, Provisioned, Provisioning, WaitingForAgent};
        matches!(self, Accepted | Provisioning | Provisioned | WaitingForAgent)
    }

    /// Is it on its way out?
    pub fn is_leaving(self) -> bool {
        matches!(self, Status::Deprovisioning | Status::Cleanup)
    }
}

/// How much a cluster has of one resource type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// All of it.
    pub total: Quantity,
    /// What is taken, by deployments or by hand.
    pub used: Quantity,
    /// The part of `used` that was taken by hand.
    #[serde(skip)]
    pub manual: Quantity,
}

impl Capacity {
    /// What can still be taken.
    pub fn free(&self) -> Quantity {
        self.total.minus(self.used)
    }
}

/// What a cluster without declared nodes calls its one node.
pub const ONLY_NODE: &str = "main";
/// How many nodes a cluster may have.
pub const MAX_NODES: usize = 1000;

/// A part of a cluster: what runs, runs on one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its name, unique in its cluster.
    pub name: String,
    /// What was written on it; beside its cluster's labels, and over them.
    pub labels: BTreeMap<String, String>,
    /// How much it has of each resource type.
    pub capacity: BTreeMap<String, Capacity>,
}

impl Node {
    /// What is free, as a vector.
    pub fn free(&self) -> Resources {
        self.capacity.iter().map(|(kind, c)| (kind.clone(), c.free())).collect()
    }
}

/// What an agent over the network last said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heard {
    /// When.
    pub at: Time,
    /// Which version of Paddock it is.
    pub version: String,
    /// What it runs containers with.
    pub runtime: String,
}

/// What matters when a cluster hosts instances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hosting {
    /// Does its agent speak as the fleet managers' agents do? Then its capacity is counted in units of
    /// instance types, as that agent says.
    pub is_foreign: bool,
    /// The name under which clients reach it.
    pub dns: Option<String>,
    /// Are its instances reached through a private network?
    pub is_private: bool,
    /// How many machines it has for instances, as its owner said.
    pub machines: Option<u32>,
    /// Which versions it can run, oldest first, by kind.
    pub versions: BTreeMap<String, Vec<Offered>>,
    /// Did its foreign agent say that it is ready?
    pub is_agent_ready: bool,
    /// How often in a row it has said since then that it is not.
    pub not_ready: u32,
    /// What it can't have as its agent says, because more is in use.
    pub shortage: Option<String>,
}

/// A version of an operator, and what it can run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// The operator's version.
    pub operator: String,
    /// Can it be used?
    pub is_ready: bool,
    /// Versions of the service, oldest first.
    pub services: Vec<String>,
    /// Versions of the protocol between its parts, oldest first.
    pub protocols: Vec<String>,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Its id.
    pub id: ClusterId,
    /// Who owns it; nobody when it is shared by all.
    pub organization_id: Option<OrganizationId>,
    /// Its name.
    pub name: String,
    /// Who serves it.
    pub provider: Provider,
    /// What its provider is told.
    pub settings: Settings,
    /// Where it stands.
    pub cloud_provider: String,
    /// Where there.
    pub region: String,
    /// What users wrote on it.
    pub labels: BTreeMap<String, String>,
    /// Where it is on its way.
    pub status: Status,
    /// Why it has that status.
    #[serde(flatten, serialize_with = "Coded::tell")]
    pub reason: Reason,
    /// Since when it is there.
    pub status_since: Time,
    /// Since when it takes nothing new and what is on it moves elsewhere, if somebody wants that.
    pub draining_at: Option<Time>,
    /// Shall it go even if what was made for it can't be taken away?
    pub is_forced: bool,
    /// What its agent last said of itself, if it speaks over the network.
    pub agent: Option<Heard>,
    /// Since when it is unreachable, if it is.
    pub unreachable_at: Option<Time>,
    /// How much it has of each resource type.
    pub capacity: BTreeMap<String, Capacity>,
    /// What it is made of: at least one, unless its agent has yet to say.
    pub nodes: Vec<Node>,
    /// What it is called where it was made, if that is elsewhere.
    pub foreign_id: Option<String>,
    /// What matters when it hosts instances.
    pub hosting: Hosting,
    /// The pool that made it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// How many deployments are on it or pinned to it.
    pub deployments: i64,
    /// Counts the changes of what users set.
    pub generation: i64,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
}

impl Cluster {
    /// What is free, as a vector.
    pub fn free(&self) -> Resources {
        self.capacity.iter().map(|(kind, c)| (kind.clone(), c.free())).collect()
    }

    /// All there is, as a vector.
    pub fn total(&self) -> Resources {
        self.capacity.iter().map(|(kind, c)| (kind.clone(), c.total)).collect()
    }
}

/// A cluster as someone asks for it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCluster {
    /// Its name.
    pub name: String,
    /// Who serves it.
    pub provider: Provider,
    /// What its provider is told.
    pub settings: Settings,
    /// Where it stands.
    pub cloud_provider: String,
    /// Where there.
    pub region: String,
    /// What users wrote on it.
    pub labels: BTreeMap<String, String>,
    /// How much it has: the sum of its nodes, if it has any.
    pub capacity: Resources,
    /// What it is made of; when it is empty, the cluster is one node.
    pub nodes: Vec<NewNode>,
}

/// A node as someone asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    /// Its name.
    pub name: String,
    /// How much it has.
    pub capacity: Resources,
    /// What is written on it.
    pub labels: BTreeMap<String, String>,
}

impl NewNode {
    /// The one node of a cluster that declares none.
    pub fn only(capacity: Resources) -> Self {
        Self { name: ONLY_NODE.into(), capacity, labels: BTreeMap::new() }
    }
}

/// Checks nodes: their names, and what they have.
pub fn nodes(nodes: &[NewNode]) -> Result<(), Invalid> {
    if nodes.len() > MAX_NODES {
        return Err(Invalid::new("nodes", format!("at most {MAX_NODES}")));
    }
    let mut names = BTreeSet::new();
    for (i, node) in nodes.iter().enumerate() {
        let field = format!("nodes[{i}]");
        name::dns_label(&format!("{field}.name"), &node.name)?;
        total(&format!("{field}.capacity"), &node.capacity)?;
        name::labels(&format!("{field}.labels"), &node.labels)?;
        if !names.insert(&node.name) {
            let twice = format!("{} is there twice; names of nodes are unique", node.name);
            return Err(Invalid::new(format!("{field}.name"), twice));
        }
    }
    Ok(())
}

/// What nodes have together.
pub fn sum(nodes: &[NewNode]) -> Resources {
    let mut sum = Resources::default();
    for node in nodes {
        sum.add(&node.capacity);
    }
    sum
}

impl NewCluster {
    /// Its nodes; if it declares none, the one that it is.
    pub fn all_nodes(&self) -> Vec<NewNode> {
        if self.nodes.is_empty() && !self.capacity.is_empty() {
            return vec![NewNode::only(self.capacity.clone())];
        }
        self.nodes.clone()
    }

    /// Checks what was asked for. `fields` names the request's own words for name and capacity.
    pub fn check(mut self, fields: [&str; 2]) -> Result<Self, Invalid> {
        let mut check = Check::default();
        let name = check.field(name::line(fields[0], &self.name, 100));
        check.field(nodes(&self.nodes));
        if self.capacity.is_empty() {
            self.capacity = sum(&self.nodes);
        } else if !self.nodes.is_empty() && self.capacity != sum(&self.nodes) {
            let rule = "with nodes it is their sum: leave it out";
            check.field(Err::<(), _>(Invalid::new(fields[1], rule)));
        }
        // An agent says by itself what its machines have.
        if self.provider == Provider::Local || !self.capacity.is_empty() {
            check.field(total(fields[1], &self.capacity));
        }
        check.field(name::labels("labels", &self.labels));
        check.field(self.settings.check());
        let cloud_provider = check.field(name::line("cloud_provider", &self.cloud_provider, 63));
        let region = check.field(name::line("region", &self.region, 63));
        check.done()?;
        let (Some(name), Some(cloud_provider), Some(region)) = (name, cloud_provider, region)
        else {
            unreachable!("a field that failed made `done` fail")
        };
        Ok(Self { name, cloud_provider, region, ..self })
    }
}

/// Checks what a cluster shall have.
pub fn total(field: &str, capacity: &Resources) -> Result<(), Invalid> {
    if capacity.is_empty() {
        return Err(Invalid::new(
            field,
            "name at least one resource type, for example {\"cpu\": 4}",
        ));
    }
    capacity.check(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_of_a_cluster() {
        use Status::*;
        for path in [
            &[Accepted, Provisioning, Provisioned, WaitingForAgent, Ready, Deprovisioning, Cleanup]
                [..],
            &[Ready, WaitingForAgent, Ready],
            &[Ready, Unreachable, Ready, Unreachable, Deprovisioning],
            &[Accepted, Failed, Accepted],
        ] {
            assert!(path.windows(2).all(|step| step[0].may_become(step[1])), "{path:?}");
        }
    }

    #[test]
    fn nothing_comes_back_from_the_way_out() {
        for &status in Status::ALL {
            for &next in Status::ALL {
                if status.is_leaving() && !next.is_leaving() {
                    assert!(!status.may_become(next), "{status} to {next}");
                }
            }
            assert!(!status.may_become(status), "{status} to itself");
        }
    }
}
