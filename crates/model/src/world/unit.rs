//! What is placed: one replica of a deployment, or one instance.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::{ClusterId, OrganizationId, Resources, Time, Xid};

/// Names a unit: whose replica it is, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct UnitId {
    /// The deployment or instance.
    pub owner: Xid,
    /// Which of its replicas.
    pub replica: u32,
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.replica)
    }
}

/// Where a unit may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// To any cluster that its organization may use: its own first, then shared ones.
    Any,
    /// To this cluster alone.
    Cluster(ClusterId),
}

/// Something that wants to be on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub id: UnitId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// Higher goes first, and may displace lower.
    pub priority: i64,
    /// Since when it is asked for: among equals, who waits longer goes first.
    pub since: Time,
    /// What it needs, all on one node.
    pub request: Resources,
    /// Where it may go.
    pub target: Target,
    /// Labels that its node (or the node's cluster) must have.
    pub selector: BTreeMap<String, String>,
    /// Must replicas of its owner be on different nodes?
    pub is_spread: bool,
    /// How long it runs once it has started, if that is known.
    pub run_for: Option<Duration>,
    /// When it ends at the latest, if that is known.
    pub ends_at: Option<Time>,
}

/// A node, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its name there.
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

/// The order of the queue: smaller goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Rank {
    pub(super) priority: Reverse<i64>,
    pub(super) since: Time,
    pub(super) id: UnitId,
}

/// A node's place inside the world: which pool, and which row of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    pub(super) pool: usize,
    pub(super) slot: usize,
}
