//! Clusters: the data planes that run workloads.

mod hosting;
mod provider;
mod reason;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::invalid::Check;
use crate::reason::StatusReason;
use crate::text_enum::text_enum;
use crate::{ClusterId, Invalid, OrganizationId, Quantity, Resources, Time, name};

pub use hosting::{InvalidVersions, NOT_READY_LIMIT, Readiness, readiness, sorted_versions};
pub use provider::{
    AGENT_TOKEN, KUBECONFIG, Kubernetes, PULL_SECRET, Provider, STATE, Settings, Terraform,
    VARIABLES,
};
pub use reason::Reason;
pub use step::{Heartbeat, HeartbeatTimeouts, ProviderOperation, Step, next_step, status_after};

/// The status of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Requested.
    Accepted,
    /// The provider is creating the cluster.
    Provisioning,
    /// The cluster exists.
    Provisioned,
    /// Prerequisites are installed; the agent has not sent a heartbeat yet.
    WaitingForAgent,
    /// Accepts workloads.
    Ready,
    /// The agent sends no heartbeats: the state of its workloads is unknown.
    Unreachable,
    /// Provisioning failed; see the reason.
    Failed,
    /// Being deleted by the provider.
    Deprovisioning,
    /// Deleted by the provider; Paddock's own objects are being removed.
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
    /// Is the transition to `next` allowed?
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

    /// Is it being provisioned, so that a user can cancel?
    pub fn is_provisioning(self) -> bool {
        use Status::{Accepted, Provisioned, Provisioning, WaitingForAgent};
        matches!(self, Accepted | Provisioning | Provisioned | WaitingForAgent)
    }

    /// Is it being deleted?
    pub fn is_deleting(self) -> bool {
        matches!(self, Status::Deprovisioning | Status::Cleanup)
    }
}

/// Capacity of one resource type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// Total capacity.
    pub total: Quantity,
    /// Capacity in use by deployments or reserved manually.
    pub used: Quantity,
    /// The part of `used` that was reserved manually.
    #[serde(skip)]
    pub manual: Quantity,
}

impl Capacity {
    /// Free capacity.
    pub fn free(&self) -> Quantity {
        self.total.minus(self.used)
    }
}

/// Name of the only node of a cluster that declares none.
pub const ONLY_NODE: &str = "main";
/// Maximum number of nodes of a cluster.
pub const MAX_NODES: usize = 1000;

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Name, unique in the cluster.
    pub name: String,
    /// Labels, which extend and override those of the cluster.
    pub labels: BTreeMap<String, String>,
    /// Capacity by resource type.
    pub capacity: BTreeMap<String, Capacity>,
}

impl Node {
    /// Free capacity.
    pub fn free(&self) -> Resources {
        self.capacity.iter().map(|(kind, c)| (kind.clone(), c.free())).collect()
    }
}

/// The last heartbeat of a remote agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentHeartbeat {
    /// Time of the heartbeat.
    pub at: Time,
    /// Version of Paddock.
    pub version: String,
    /// Container runtime.
    pub runtime: String,
}

/// Settings and state for hosting instances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hosting {
    /// Does a third-party (fleetshard-compatible) agent serve it? Then its capacity is counted in
    /// units of instance types, as reported by the agent.
    pub is_foreign: bool,
    /// DNS name under which clients reach it.
    pub dns: Option<String>,
    /// Are its instances only reachable through a private network?
    pub is_private: bool,
    /// Number of machines for instances, as declared by the owner.
    pub machines: Option<u32>,
    /// Supported versions by kind, oldest first.
    pub versions: BTreeMap<String, Vec<OperatorVersion>>,
    /// Does the third-party agent report that it is ready?
    pub is_agent_ready: bool,
    /// Number of consecutive not-ready reports since then.
    pub not_ready: u32,
    /// Reported capacity that was rejected because more is in use.
    pub shortage: Option<String>,
}

/// An operator version and the versions it can run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorVersion {
    /// The operator's version.
    pub operator: String,
    /// Is it usable?
    pub is_ready: bool,
    /// Service versions, oldest first.
    pub services: Vec<String>,
    /// Inter-node protocol versions, oldest first.
    pub protocols: Vec<String>,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// The id.
    pub id: ClusterId,
    /// The owning organization; none for a shared cluster.
    pub organization_id: Option<OrganizationId>,
    /// The name.
    pub name: String,
    /// The provider.
    pub provider: Provider,
    /// Provider settings.
    pub settings: Settings,
    /// The cloud provider.
    pub cloud_provider: String,
    /// The region.
    pub region: String,
    /// User-defined labels.
    pub labels: BTreeMap<String, String>,
    /// The status.
    pub status: Status,
    /// The reason of the status.
    #[serde(flatten, serialize_with = "StatusReason::serialize_status")]
    pub reason: Reason,
    /// Time of the last status change.
    pub status_since: Time,
    /// Since when it is being drained, if it is.
    pub draining_at: Option<Time>,
    /// Is deletion forced, even if the provider's objects can't be removed?
    pub is_forced: bool,
    /// The last heartbeat of its agent, if that is remote.
    pub agent: Option<AgentHeartbeat>,
    /// Since when it is unreachable, if it is.
    pub unreachable_at: Option<Time>,
    /// Capacity by resource type.
    pub capacity: BTreeMap<String, Capacity>,
    /// Its nodes: at least one, unless the agent has yet to report them.
    pub nodes: Vec<Node>,
    /// Its id in the external system that created it.
    pub foreign_id: Option<String>,
    /// Settings and state for hosting instances.
    pub hosting: Hosting,
    /// The pool that created it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Number of deployments on it or pinned to it.
    pub deployments: i64,
    /// Incremented with every change of the spec.
    pub generation: i64,
    /// The creator.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
}

impl Cluster {
    /// Free capacity.
    pub fn free(&self) -> Resources {
        self.capacity.iter().map(|(kind, c)| (kind.clone(), c.free())).collect()
    }

    /// Total capacity.
    pub fn total(&self) -> Resources {
        self.capacity.iter().map(|(kind, c)| (kind.clone(), c.total)).collect()
    }
}

/// A validated request to create a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCluster {
    /// The name.
    pub name: String,
    /// The provider.
    pub provider: Provider,
    /// Provider settings.
    pub settings: Settings,
    /// The cloud provider.
    pub cloud_provider: String,
    /// The region.
    pub region: String,
    /// User-defined labels.
    pub labels: BTreeMap<String, String>,
    /// Total capacity: the sum of its nodes, if it declares any.
    pub capacity: Resources,
    /// The nodes; if empty, the cluster has one node.
    pub nodes: Vec<NewNode>,
}

/// A request to create a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    /// The name.
    pub name: String,
    /// The capacity.
    pub capacity: Resources,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

impl NewNode {
    /// The only node of a cluster that declares none.
    pub fn only(capacity: Resources) -> Self {
        Self { name: ONLY_NODE.into(), capacity, labels: BTreeMap::new() }
    }
}

/// Checks the names, capacities and labels of nodes.
pub fn check_nodes(nodes: &[NewNode]) -> Result<(), Invalid> {
    if nodes.len() > MAX_NODES {
        return Err(Invalid::new("nodes", format!("must have at most {MAX_NODES} nodes")));
    }
    let mut names = BTreeSet::new();
    for (i, node) in nodes.iter().enumerate() {
        let field = format!("nodes[{i}]");
        name::dns_label(&format!("{field}.name"), &node.name)?;
        check_capacity(&format!("{field}.capacity"), &node.capacity)?;
        name::labels(&format!("{field}.labels"), &node.labels)?;
        if !names.insert(&node.name) {
            let twice = format!("{} is used twice; node names must be unique", node.name);
            return Err(Invalid::new(format!("{field}.name"), twice));
        }
    }
    Ok(())
}

/// The total capacity of nodes.
pub fn total_capacity(nodes: &[NewNode]) -> Resources {
    let mut sum = Resources::default();
    for node in nodes {
        sum.add(&node.capacity);
    }
    sum
}

impl NewCluster {
    /// The declared nodes, or the only one.
    pub fn all_nodes(&self) -> Vec<NewNode> {
        if self.nodes.is_empty() && !self.capacity.is_empty() {
            return vec![NewNode::only(self.capacity.clone())];
        }
        self.nodes.clone()
    }

    /// Checks the request. `fields` are the request's field names for name and capacity.
    pub fn check(mut self, fields: [&str; 2]) -> Result<Self, Invalid> {
        let mut check = Check::default();
        let name = check.field(name::line(fields[0], &self.name, 100));
        check.field(check_nodes(&self.nodes));
        if self.capacity.is_empty() {
            self.capacity = total_capacity(&self.nodes);
        } else if !self.nodes.is_empty() && self.capacity != total_capacity(&self.nodes) {
            let rule = "must be omitted if nodes are given: it is their sum";
            check.field(Err::<(), _>(Invalid::new(fields[1], rule)));
        }
        // Agents report the capacity of their machines.
        if self.provider == Provider::Local || !self.capacity.is_empty() {
            check.field(check_capacity(fields[1], &self.capacity));
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

/// Checks the total capacity of a cluster.
pub fn check_capacity(field: &str, capacity: &Resources) -> Result<(), Invalid> {
    if capacity.is_empty() {
        return Err(Invalid::new(
            field,
            "must contain at least one resource type, for example {\"cpu\": 4}",
        ));
    }
    capacity.check(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifecycle_transitions_are_allowed() {
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
    fn deletion_is_irreversible() {
        for &status in Status::ALL {
            for &next in Status::ALL {
                if status.is_deleting() && !next.is_deleting() {
                    assert!(!status.may_become(next), "{status} to {next}");
                }
            }
            assert!(!status.may_become(status), "{status} to itself");
        }
    }
}
