//! Units, which are what the scheduler places: one replica of a deployment, or one instance.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::{ClusterId, OrganizationId, Resources, Time, Xid};

/// Identifies a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct UnitId {
    /// The deployment or instance.
    pub owner: Xid,
    /// The replica number.
    pub replica: u32,
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.replica)
    }
}

/// The clusters a unit may be placed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Any cluster that its organization may use: its own first, then shared ones.
    Any,
    /// Only this cluster.
    Cluster(ClusterId),
}

/// A unit to place on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The id.
    pub id: UnitId,
    /// The owning organization.
    pub organization: OrganizationId,
    /// Higher priorities go first and may preempt lower ones.
    pub priority: i64,
    /// Time of the request: among equal priorities the oldest goes first.
    pub since: Time,
    /// Requested resources, on a single node.
    pub request: Resources,
    /// The clusters it may be placed on.
    pub target: Target,
    /// Labels that the node or its cluster must have.
    pub selector: BTreeMap<String, String>,
    /// Anti-affinity: must replicas of its owner be on different nodes?
    pub is_spread: bool,
    /// Does it run a container? If so, it takes from the capacity of its cluster's machine, too.
    pub is_container: bool,
    /// Run time after its start, if limited.
    pub run_for: Option<Duration>,
    /// Latest end, if known.
    pub ends_at: Option<Time>,
}

/// Identifies a node by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node's name in the cluster.
    #[serde(serialize_with = "as_text")]
    pub node: Arc<str>,
}

fn as_text<S: serde::Serializer>(text: &Arc<str>, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(text)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster, self.node)
    }
}

/// The queue order: smaller goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Rank {
    pub(super) priority: Reverse<i64>,
    pub(super) since: Time,
    pub(super) id: UnitId,
}

/// Identifies a node by pool and slot in that pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    pub(super) pool: usize,
    pub(super) slot: usize,
}
