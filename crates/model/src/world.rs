//! The scheduler: places units on nodes, preempts lower priorities, and explains pending units.
//!
//! A [`World`] is an in-memory model that is updated with each change. The cost of
//! [`World::decide`] is proportional to the change, not to the size of the world. Decisions apply
//! to the model at once, so deciding again yields nothing new; the caller persists them and reports
//! the outcome.
//!
//! Pure: no clock, no randomness, no I/O. Decisions depend only on the facts, never on the order
//! in which they were reported.

mod candidates;
mod capacity;
mod class;
mod cluster;
mod decision;
mod dry_run;
mod explain;
mod lifecycle;
mod machine;
mod node;
mod order;
mod pending;
mod pool;
mod preempt;
mod queue;
mod reserve;
mod round;
mod score;
mod share;
mod tree;
mod unit;
mod vector;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub use cluster::{Cluster, Node};
pub use decision::{
    Backfill, BackfillReason, Decisions, PendingReason, PendingUnit, Preemption, Reservation, Start,
};
pub use dry_run::Outcome;
pub use explain::{Explanation, LAST_POSITION, Shortage, Verdict};
pub use pending::PendingGroup;
pub use unit::{Place, Target, Unit, UnitId};

use class::{Class, Key};
use cluster::ClusterEntry;
use machine::Machines;
use pool::Pool;
use round::WorkItems;
use unit::{Rank, Spot};

use crate::{ClusterId, OrganizationId, Resources, Time, Xid, deployment};

/// Tuning parameters.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a unit is pending before freed capacity is reserved for it.
    pub reserve_after: Duration,
    /// Maximum share of a pool's nodes with such reservations, in thousandths (at least one node).
    pub max_reserved_permille: usize,
    /// Number of candidate nodes that are scored for a start.
    pub candidates: usize,
    /// Number of candidate nodes that are scored for a preemption.
    pub preemption_candidates: usize,
    /// What a container takes from its machine, given its request.
    pub container_limits: fn(&Resources) -> Resources,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            reserve_after: Duration::from_mins(5),
            max_reserved_permille: 50,
            candidates: 8,
            preemption_candidates: 16,
            container_limits: deployment::limits,
        }
    }
}

/// Preemption budget of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Preemptions allowed per hour.
    pub limit: u32,
    /// Preemptions in the last hour.
    pub used: u32,
}

/// Placement state of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// In the queue, possibly with capacity held for it.
    Pending { hold: Option<Hold>, reason: Option<PendingReason> },
    /// On a node; `spot` is empty while the node is not registered.
    Placed { place: Place, spot: Option<Spot>, started: Time },
    /// On a node and stopping.
    Stopping { place: Place, spot: Option<Spot>, started: Time, by: Option<UnitId> },
}

/// Capacity held on a node for a pending unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hold {
    spot: Spot,
    /// Is the capacity complete once the stopping units have stopped?
    is_promised: bool,
}

/// A unit and its placement state.
#[derive(Debug, Clone)]
struct Entry {
    id: UnitId,
    class: usize,
    priority: i64,
    since: Time,
    run_for: Option<Duration>,
    ends_at: Option<Time>,
    state: State,
}

impl Entry {
    fn rank(&self) -> Rank {
        Rank { priority: std::cmp::Reverse(self.priority), since: self.since, id: self.id }
    }

    /// The planned end of a unit that started at `started`, if it has one.
    fn planned_end(&self, started: Time) -> Option<Time> {
        self.run_for.map(|long| started + long).into_iter().chain(self.ends_at).min()
    }
}

/// Clusters, placed units and the queue.
#[derive(Debug, Clone, Default)]
pub struct World {
    settings: Settings,
    pools: Vec<Pool>,
    /// Pools by owner (shared clusters have none) and machine.
    pool_of: HashMap<(Option<OrganizationId>, Option<usize>), usize>,
    machines: Machines,
    clusters: HashMap<ClusterId, ClusterEntry>,
    entries: Vec<Entry>,
    vacant: Vec<usize>,
    index: HashMap<UnitId, usize>,
    classes: Vec<Class>,
    vacant_classes: Vec<usize>,
    class_of: HashMap<Arc<Key>, usize>,
    /// Classes pinned to a cluster, whether it is registered or not.
    pinned: HashMap<ClusterId, BTreeSet<usize>>,
    /// Units placed on nodes that are not registered.
    unassigned: BTreeMap<Place, BTreeSet<usize>>,
    /// Nodes of units with anti-affinity, by owner.
    spread_spots: HashSet<(Xid, Spot)>,
    budgets: HashMap<OrganizationId, Budget>,
    over_budget: BTreeSet<(OrganizationId, usize)>,
    /// Weights of organizations in fair shares, if not 1.
    weights: HashMap<OrganizationId, i64>,
    /// Classes with pending units that are pinned to a cluster, counted by organization.
    pinned_requests: HashMap<ClusterId, HashMap<OrganizationId, usize>>,
    /// Classes whose heads could preempt if other organizations were above their fair shares.
    share_blocked: BTreeSet<usize>,
    /// May an organization have come above its fair share since the last decision?
    are_shares_stale: bool,
    /// When the heads of classes become due for a reservation.
    due: BTreeSet<(Time, usize)>,
    work: WorkItems,
    /// Pools whose indexes must be rebuilt.
    stale_pools: BTreeSet<usize>,
    /// Pools with heads that are due for a reservation.
    due_pools: BTreeSet<usize>,
    /// Units enqueued since the last decision.
    newly_pending: BTreeSet<UnitId>,
    /// Version of the set of nodes and their capacity.
    structure_version: u64,
}

impl World {
    /// An empty world.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Sets the preemption budget of an organization; without one preemptions are unlimited.
    pub fn set_budget(&mut self, organization: OrganizationId, budget: Option<Budget>) {
        match budget {
            Some(budget) => self.budgets.insert(organization, budget),
            None => self.budgets.remove(&organization),
        };
        let from = (organization, 0);
        let held_back: Vec<usize> = self
            .over_budget
            .range(from..)
            .take_while(|(other, _)| *other == organization)
            .map(|(_, class)| *class)
            .collect();
        for class in held_back {
            self.queue_attempt(class);
        }
    }

    fn preemptions_left(&self, organization: OrganizationId) -> usize {
        let budget = self.budgets.get(&organization);
        budget.map_or(usize::MAX, |b| b.limit.saturating_sub(b.used) as usize)
    }

    /// When the passage of time alone may change the decisions.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Number of pending units.
    pub fn pending_len(&self) -> usize {
        self.entries_with(|state| matches!(state, State::Pending { .. })).count()
    }

    /// All reservations, by rank.
    pub fn reservations(&self) -> Vec<Reservation> {
        let mut all = Vec::new();
        for (pool, holds) in self.pools.iter().enumerate().map(|(i, pool)| (i, &pool.holds)) {
            for (rank, &(unit, slot)) in holds {
                let place = self.place(Spot { pool, slot });
                let State::Pending { hold: Some(hold), .. } = self.entries[unit].state else {
                    continue;
                };
                all.push((
                    *rank,
                    Reservation { unit: rank.id, place, is_promised: hold.is_promised },
                ));
            }
        }
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, reservation)| reservation).collect()
    }

    fn entries_with(&self, is: impl Fn(&State) -> bool) -> impl Iterator<Item = &Entry> {
        self.index.values().map(|&unit| &self.entries[unit]).filter(move |entry| is(&entry.state))
    }

    fn place(&self, spot: Spot) -> Place {
        let node = &self.pools[spot.pool].nodes[spot.slot];
        Place { cluster: node.cluster, node: node.name.clone() }
    }
}

#[cfg(test)]
mod tests;
