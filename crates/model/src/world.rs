//! Placement of everything at once: who starts where, who yields, who waits and why.
//!
//! A [`World`] is kept in memory and told what changes; [`World::decide`] then costs as much as
//! what changed, not as what there is. Decisions are taken as done at once, so that deciding again
//! gives nothing new; the caller makes them durable and tells what became of them.
//!
//! Pure: no clock, no randomness, no I/O. What is decided depends only on the facts, never on the
//! order in which they were told.

mod class;
mod cluster;
mod decision;
mod dry_run;
mod explain;
mod lines;
mod node;
mod order;
mod place;
mod pool;
mod preempt;
mod queue;
mod reserve;
mod room;
mod round;
mod score;
mod seek;
mod tree;
mod unit;
mod vector;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub use cluster::{Cluster, Node};
pub use decision::{Backfill, Decisions, Preemption, Reservation, Start, Wait, Waiting, Why};
pub use dry_run::Outcome;
pub use explain::{Explanation, LAST_POSITION, Shortage, Verdict};
pub use lines::Line;
pub use unit::{Place, Target, Unit, UnitId};

use class::{Class, Key};
use cluster::Site;
use pool::Pool;
use round::Agenda;
use unit::{Rank, Spot};

use crate::{ClusterId, OrganizationId, Time, Xid};

/// What can be tuned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long somebody must wait before freed room is kept for it.
    pub patience: Duration,
    /// Of a thousand nodes of a pool, on how many room may be kept like that (at least on one).
    pub kept_permille: usize,
    /// How many nodes are compared before the best is taken.
    pub candidates: usize,
    /// How many nodes are compared before the least loss is taken.
    pub loss_candidates: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patience: Duration::from_mins(5),
            kept_permille: 50,
            candidates: 8,
            loss_candidates: 16,
        }
    }
}

/// How many preemptions an organization may still cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How many in an hour.
    pub limit: u32,
    /// How many in the last hour.
    pub used: u32,
}

/// Where a unit is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It waits; perhaps room is kept for it.
    Waiting { hold: Option<Hold>, said: Option<Wait> },
    /// It is on a node, if there is such a node.
    Placed { place: Place, spot: Option<Spot>, started: Time },
    /// The same, but it was told to stop.
    Stopping { place: Place, spot: Option<Spot>, started: Time, by: Option<UnitId> },
}

/// Room that is kept for somebody who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hold {
    spot: Spot,
    /// Is all of it there once those who stop have stopped? Then it only waits for that.
    is_promised: bool,
}

/// A unit and where it is.
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

    /// When it ends if it started at `started`, as far as that is known.
    fn planned_end(&self, started: Time) -> Option<Time> {
        self.run_for.map(|long| started + long).into_iter().chain(self.ends_at).min()
    }
}

/// Clusters, what is on them, and who waits.
#[derive(Debug, Clone, Default)]
pub struct World {
    settings: Settings,
    pools: Vec<Pool>,
    /// By owner; nobody owns what is shared.
    pool_of: HashMap<Option<OrganizationId>, usize>,
    sites: HashMap<ClusterId, Site>,
    entries: Vec<Entry>,
    vacant: Vec<usize>,
    index: HashMap<UnitId, usize>,
    classes: Vec<Class>,
    vacant_classes: Vec<usize>,
    class_of: HashMap<Arc<Key>, usize>,
    /// Classes that are pinned to a cluster, known or not.
    pinned: HashMap<ClusterId, BTreeSet<usize>>,
    /// Units that are said to be on nodes that are not known.
    homeless: BTreeMap<Place, BTreeSet<usize>>,
    /// Where units are whose siblings must be elsewhere.
    apart: HashSet<(Xid, Spot)>,
    budgets: HashMap<OrganizationId, Budget>,
    over_budget: BTreeSet<(OrganizationId, usize)>,
    /// When heads of classes will have waited long enough.
    due: BTreeSet<(Time, usize)>,
    agenda: Agenda,
    /// Pools whose indexes must be computed anew.
    stale: BTreeSet<usize>,
    /// Pools where somebody wants room to be kept.
    wanting: BTreeSet<usize>,
    /// Who came to wait since the last decision.
    news: BTreeSet<UnitId>,
    /// Counts changes of what nodes there are and what they have.
    structure: u64,
}

impl World {
    /// An empty world.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Says how many preemptions an organization may cause; without a budget there is no limit.
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
            self.put_on_agenda(class);
        }
    }

    /// How many preemptions an organization may still cause.
    fn preemptions_left(&self, organization: OrganizationId) -> usize {
        let budget = self.budgets.get(&organization);
        budget.map_or(usize::MAX, |b| b.limit.saturating_sub(b.used) as usize)
    }

    /// When deciding again may give something new though nothing has changed but the time.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many units wait.
    pub fn waiting_len(&self) -> usize {
        self.entries_with(|state| matches!(state, State::Waiting { .. })).count()
    }

    /// Everybody for whom room is kept, by rank.
    pub fn reservations(&self) -> Vec<Reservation> {
        let mut all = Vec::new();
        for (pool, holds) in self.pools.iter().enumerate().map(|(i, pool)| (i, &pool.holds)) {
            for (rank, &(unit, slot)) in holds {
                let place = self.place(Spot { pool, slot });
                let State::Waiting { hold: Some(hold), .. } = self.entries[unit].state else {
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
