//! Observed state of a pool: its clusters, pending workloads and past decisions.

use serde::{Deserialize, Serialize};

use super::ScaleUpCause;
use super::decide::{Action, Decision};
use crate::cluster::Status;
use crate::{ClusterId, Resources, Time};

/// The input of a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The pool's clusters that are not deleted.
    pub clusters: Vec<ObservedCluster>,
    /// Pending workloads that fit on no node now, but on a new cluster of the pool.
    pub waiting: Vec<PendingWorkloads>,
    /// Memory of past decisions.
    pub memory: Memory,
}

/// A cluster of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCluster {
    /// The id.
    pub id: ClusterId,
    /// The name.
    pub name: String,
    /// The status.
    pub status: Status,
    /// The nodes.
    pub nodes: Vec<ObservedNode>,
    /// Since when it has no workload other than reservations, if so.
    pub empty_since: Option<Time>,
    /// Time of the last status change, or later.
    pub since: Time,
}

/// A node of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedNode {
    /// Total capacity.
    pub total: Resources,
    /// Capacity in use, including reservations.
    pub used: Resources,
    /// The part of `used` that is reserved for instances and can be preempted at once.
    pub reserved: Resources,
}

/// Pending workloads with the same request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingWorkloads {
    /// Requested resources of each.
    pub request: Resources,
    /// Number of workloads.
    pub count: usize,
    /// Since when the first is pending.
    pub since: Time,
}

/// State of a pool between two decisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Time of the last scale-up.
    pub grown_at: Option<Time>,
    /// Time of the last scale-down.
    pub shrunk_at: Option<Time>,
    /// Why it needs to grow, if it does.
    pub wish: Option<ScaleUpCause>,
    /// Since when that cause applies.
    pub wish_since: Option<Time>,
}

impl ObservedNode {
    /// Free capacity.
    pub fn free(&self) -> Resources {
        let mut free = self.total.clone();
        free.subtract(&self.used);
        free
    }

    /// Free capacity after preempting reservations.
    pub fn open(&self) -> Resources {
        let mut open = self.free();
        open.add(&self.reserved);
        open
    }
}

impl ObservedCluster {
    /// Does it accept workloads?
    pub fn is_ready(&self) -> bool {
        self.status == Status::Ready
    }

    /// Is it being provisioned?
    pub fn is_arriving(&self) -> bool {
        use Status::{Accepted, Provisioned, Provisioning, WaitingForAgent};
        matches!(self.status, Accepted | Provisioning | Provisioned | WaitingForAgent)
    }

    /// Does it count for `at_least`?
    pub fn is_live(&self) -> bool {
        self.status != Status::Failed && !self.status.is_deleting()
    }
}

impl Observed {
    /// Capacity in use without reservations, including that of clusters being deleted.
    pub fn consumed(&self) -> Resources {
        let mut sum = Resources::default();
        for node in self.clusters.iter().flat_map(|cluster| &cluster.nodes) {
            let mut real = node.used.clone();
            real.subtract(&node.reserved);
            sum.add(&real);
        }
        sum
    }

    /// Free capacity of ready clusters.
    pub fn free(&self) -> Resources {
        let mut sum = Resources::default();
        let ready = self.clusters.iter().filter(|cluster| cluster.is_ready());
        ready.flat_map(|cluster| &cluster.nodes).for_each(|node| sum.add(&node.free()));
        sum
    }

    /// Number of clusters that are neither failed nor being deleted.
    pub fn live(&self) -> usize {
        self.clusters.iter().filter(|cluster| cluster.is_live()).count()
    }

    /// Number of clusters that exist, including those being deleted.
    pub fn existing(&self) -> usize {
        self.clusters.iter().filter(|cluster| cluster.status != Status::Failed).count()
    }

    /// The observed state without one cluster.
    pub(super) fn without(&self, id: ClusterId) -> Observed {
        let mut seen = self.clone();
        seen.clusters.retain(|cluster| cluster.id != id);
        seen
    }
}

impl Memory {
    /// The memory after a decision was executed.
    pub fn after(&self, decision: &Decision, now: Time) -> Memory {
        let is_same = decision.wish == self.wish;
        let since = if is_same { self.wish_since } else { Some(now) };
        let mut memory =
            Memory { wish: decision.wish, wish_since: decision.wish.and(since), ..self.clone() };
        match decision.action {
            // If the new cluster is not enough, that is a new need.
            Action::Grow => {
                memory.grown_at = Some(now);
                (memory.wish, memory.wish_since) = (None, None);
            }
            Action::Shrink(_) => memory.shrunk_at = Some(now),
            Action::Stay => {}
        }
        memory
    }
}
