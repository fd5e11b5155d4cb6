//! What a pool looks like now: its clusters, who waits, and what was done before.

use serde::{Deserialize, Serialize};

use super::Wish;
use super::decide::{Action, Decision};
use crate::cluster::Status;
use crate::{ClusterId, Resources, Time};

/// What a decision is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The clusters that the pool has made and that are not gone.
    pub clusters: Vec<SeenCluster>,
    /// Who waits and fits nowhere now, but would on a new cluster of the pool.
    pub waiting: Vec<Waiting>,
    /// What was done and wished before.
    pub memory: Memory,
}

/// A cluster of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCluster {
    /// Its id.
    pub id: ClusterId,
    /// Its name.
    pub name: String,
    /// Where it is on its way.
    pub status: Status,
    /// What it is made of.
    pub nodes: Vec<SeenNode>,
    /// Since when nothing real is on it, if that is so.
    pub empty_since: Option<Time>,
    /// When its status last changed, or later.
    pub since: Time,
}

/// A node of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenNode {
    /// What it has.
    pub total: Resources,
    /// What is taken of that.
    pub used: Resources,
    /// The part of it that only holds room, and yields at once.
    pub reserved: Resources,
}

/// Some who wait, alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// What each of them asks for.
    pub request: Resources,
    /// How many they are.
    pub count: usize,
    /// Since when the first of them waits.
    pub since: Time,
}

/// What a pool remembers from one look to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// When it last made a cluster.
    pub grown_at: Option<Time>,
    /// When it last removed one.
    pub shrunk_at: Option<Time>,
    /// Why it wants to grow, if it does.
    pub wish: Option<Wish>,
    /// Since when it does, for that reason.
    pub wish_since: Option<Time>,
}

impl SeenNode {
    /// What is left.
    pub fn free(&self) -> Resources {
        let mut free = self.total.clone();
        free.subtract(&self.used);
        free
    }

    /// What real ones could have: what only holds room yields.
    pub fn open(&self) -> Resources {
        let mut open = self.free();
        open.add(&self.reserved);
        open
    }
}

impl SeenCluster {
    /// Does it take units now?
    pub fn is_ready(&self) -> bool {
        self.status == Status::Ready
    }

    /// Is it being made?
    pub fn is_arriving(&self) -> bool {
        use Status::{Accepted, Provisioned, Provisioning, WaitingForAgent};
        matches!(self.status, Accepted | Provisioning | Provisioned | WaitingForAgent)
    }

    /// Does it count among those that the pool has?
    pub fn is_live(&self) -> bool {
        self.status != Status::Failed && !self.status.is_leaving()
    }
}

impl Seen {
    /// What is really consumed, also on what goes: what only holds room is not.
    pub fn consumed(&self) -> Resources {
        let mut sum = Resources::default();
        for node in self.clusters.iter().flat_map(|cluster| &cluster.nodes) {
            let mut real = node.used.clone();
            real.subtract(&node.reserved);
            sum.add(&real);
        }
        sum
    }

    /// What is left on ready clusters.
    pub fn free(&self) -> Resources {
        let mut sum = Resources::default();
        let ready = self.clusters.iter().filter(|cluster| cluster.is_ready());
        ready.flat_map(|cluster| &cluster.nodes).for_each(|node| sum.add(&node.free()));
        sum
    }

    /// How many clusters the pool has.
    pub fn live(&self) -> usize {
        self.clusters.iter().filter(|cluster| cluster.is_live()).count()
    }

    /// How many it pays for: also those that go.
    pub fn there(&self) -> usize {
        self.clusters.iter().filter(|cluster| cluster.status != Status::Failed).count()
    }

    /// The same without one cluster.
    pub(super) fn without(&self, id: ClusterId) -> Seen {
        let mut seen = self.clone();
        seen.clusters.retain(|cluster| cluster.id != id);
        seen
    }
}

impl Memory {
    /// What is remembered once a decision was carried out.
    pub fn after(&self, decision: &Decision, now: Time) -> Memory {
        let is_same = decision.wish == self.wish;
        let since = if is_same { self.wish_since } else { Some(now) };
        let mut memory =
            Memory { wish: decision.wish, wish_since: decision.wish.and(since), ..self.clone() };
        match decision.action {
            // What was wished for comes; should it not be enough, that is a new wish.
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
