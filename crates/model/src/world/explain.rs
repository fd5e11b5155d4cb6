//! Explains a unit's placement with numbers, so that users can act on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use serde::Serialize;

use super::class::CandidatePool;
use super::decision::PendingReason;
use super::node::amount;
use super::unit::{Place, Rank, Spot, UnitId};
use super::{Hold, State, World};
use crate::{Resources, Time};

/// Maximum number of shortages in an explanation.
const NODES: usize = 5;
/// Maximum number of blockers in an explanation.
const UNITS: usize = 20;
/// Upper limit of queue positions.
pub const LAST_POSITION: usize = if cfg!(test) { 5 } else { 1000 };
/// Maximum number of units whose planned ends are examined.
const ENDS: usize = 20_000;

/// Whether a unit can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Placed on a node.
    Placed,
    /// Stopping: its capacity is being released.
    Stopping,
    /// Pending: capacity is insufficient now.
    NotNow,
    /// Pending: no usable node is large enough.
    Never,
}

/// The shortage on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// The node.
    pub place: Place,
    /// Missing capacity, counting what is about to be free and not held for others; empty if only
    /// other constraints prevent placement.
    pub missing: Resources,
    /// Is the node too small, even when empty?
    pub is_too_small: bool,
}

/// Where a unit is, or why it is pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The unit.
    pub unit: UnitId,
    /// Whether it can run.
    pub verdict: Verdict,
    /// Why it is pending, once a scheduling round has examined it.
    pub wait: Option<PendingReason>,
    /// Queue position from 1, among units pending for the same nodes. Capped at [`LAST_POSITION`].
    pub position: Option<usize>,
    /// Its node, or the node reserved for it.
    pub place: Option<Place>,
    /// Shortages on the nearest nodes, smallest first.
    pub shortages: Vec<Shortage>,
    /// Units that have to end first on the nearest node, soonest first.
    pub blockers: Vec<UnitId>,
    /// Estimated start if all units end as planned and none of better rank takes the capacity. In
    /// a very large pool only the nearest nodes are examined, so it may be sooner.
    pub earliest: Option<Time>,
}

/// Planned end (if any), unit, and the capacity it releases.
type Release<'a> = (Option<Time>, UnitId, &'a [(usize, i64)]);

/// A usable node; the smallest shortage sorts first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Near {
    is_too_small: bool,
    lack_permille: i128,
    position: usize,
    spot: Spot,
}

/// The units that have to end on one node.
struct Path {
    ends: Vec<UnitId>,
    /// When the last of them ends, if all have a planned end.
    at: Option<Time>,
}

impl World {
    /// Explains a unit's placement. The cost is proportional to the nodes it may use, however many
    /// units are pending: call it on request, not in every round.
    pub fn explain(&mut self, id: UnitId, now: Time) -> Option<Explanation> {
        self.refresh_pools();
        let &unit = self.index.get(&id)?;
        let entry = &self.entries[unit];
        Some(match entry.state.clone() {
            State::Placed { place, .. } => Explanation::settled(id, Verdict::Placed, place),
            State::Stopping { place, .. } => Explanation::settled(id, Verdict::Stopping, place),
            State::Pending { hold, reason } => self.explain_wait(unit, hold, reason, now),
        })
    }

    pub(super) fn explain_wait(
        &mut self,
        unit: usize,
        hold: Option<Hold>,
        wait: Option<PendingReason>,
        now: Time,
    ) -> Explanation {
        let (class, rank) = (self.entries[unit].class, self.entries[unit].rank());
        let never = self.never_fits(class);
        let near = self.nearest_nodes(class, &rank);
        let reserved = hold.map(|hold| hold.spot);
        let first = reserved.or_else(|| near.iter().find(|n| !n.is_too_small).map(|n| n.spot));
        let path = first.and_then(|spot| self.path(class, &rank, spot, now));
        let earliest = self.earliest(class, &rank, &near, now);
        Explanation {
            unit: rank.id,
            verdict: if never { Verdict::Never } else { Verdict::NotNow },
            wait,
            position: Some(self.position(class, &rank)),
            place: reserved.map(|spot| self.place(spot)),
            shortages: near.iter().take(NODES).map(|n| self.shortage(class, &rank, n)).collect(),
            blockers: path.map(|path| path.ends).unwrap_or_default(),
            earliest: earliest.filter(|_| !never),
        }
    }

    /// Queue position of `rank` among units pending for a pool that the class may use.
    pub(super) fn position(&self, class: usize, rank: &Rank) -> usize {
        let mut left = LAST_POSITION - 1;
        let mut seen = BTreeSet::from([class]);
        let mut count = |pending: &BTreeMap<Rank, usize>| {
            left -= pending.range(..rank).take(left).count();
            left > 0
        };
        let mut is_open = count(&self.classes[class].pending);
        for candidate in &self.classes[class].candidates {
            self.pools[candidate.pool].queue.each_before(rank, &mut |other| {
                if seen.insert(other) {
                    is_open = count(&self.classes[other].pending);
                }
                if is_open { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        let pools = self.classes[class].candidates.iter().map(|c| &self.pools[c.pool]);
        let promised = pools.flat_map(|pool| pool.promised.range(..rank).take(left));
        let promised: BTreeSet<&Rank> = promised.map(|(rank, _)| rank).collect();
        LAST_POSITION - left.saturating_sub(promised.len())
    }

    /// The nodes that a class may use, smallest shortage first; too small ones last.
    fn nearest_nodes(&self, class: usize, rank: &Rank) -> Vec<Near> {
        let mut nodes = Vec::new();
        for candidate in &self.classes[class].candidates {
            let pool = &self.pools[candidate.pool];
            let Some(demand) = &candidate.demand else { continue };
            for (position, spot) in self.nodes_of(class, candidate) {
                if self.matches(class, spot) && pool.nodes[spot.slot].is_open {
                    let is_too_small = !self.fits_empty(class, spot, demand);
                    let lack_permille = pool.lack_permille(spot.slot, demand, rank);
                    nodes.push(Near { is_too_small, lack_permille, position, spot });
                }
            }
        }
        nodes.sort_unstable();
        nodes
    }

    fn nodes_of(
        &self,
        class: usize,
        candidate: &CandidatePool,
    ) -> impl Iterator<Item = (usize, Spot)> {
        let pool = candidate.pool;
        let group = self.group(class, pool).map(|group| &self.pools[pool].groups[group]);
        let nodes = group.into_iter().flat_map(|group| group.order.iter());
        nodes.map(move |(position, slot)| (position, Spot { pool, slot }))
    }

    fn shortage(&self, class: usize, rank: &Rank, near: &Near) -> Shortage {
        let Near { spot, is_too_small, .. } = *near;
        let pool = &self.pools[spot.pool];
        let demand = self.classes[class].demand(spot.pool).cloned().unwrap_or_default();
        let missing = demand.iter().map(|&(k, amount)| {
            let free = pool.future_free_for(spot.slot, k, rank);
            (k, amount.saturating_sub(free.max(0)))
        });
        let missing = pool.kinds.to_resources(missing.filter(|(_, missing)| *missing > 0));
        Shortage { place: self.place(spot), missing, is_too_small }
    }

    /// The units that have to end on a node, by planned end.
    fn path(&self, class: usize, rank: &Rank, spot: Spot, now: Time) -> Option<Path> {
        let pool = &self.pools[spot.pool];
        let demand = self.classes[class].demand(spot.pool)?;
        let node = &pool.nodes[spot.slot];
        let free = |k| pool.free(spot.slot, k).saturating_sub(node.held_ahead(rank, k));
        let mut missing: Vec<(usize, i64)> =
            demand.iter().map(|&(k, amount)| (k, amount.saturating_sub(free(k)))).collect();
        let mut path = Path { ends: Vec::new(), at: Some(now) };
        for (end, unit, released) in self.releases(spot, now) {
            if missing.iter().all(|(_, missing)| *missing <= 0) {
                break;
            }
            let helps = |&(k, m): &(usize, i64)| m > 0 && amount(released, k) > 0;
            if !missing.iter().any(helps) {
                continue;
            }
            for (k, m) in &mut missing {
                *m -= amount(released, *k);
            }
            path.ends.push(unit);
            path.at = path.at.and_then(|at| end.map(|end| at.max(end)));
        }
        let fits = missing.iter().all(|(_, missing)| *missing <= 0);
        path.ends.truncate(UNITS);
        fits.then_some(path)
    }

    /// All units on a node: stopping ones, then by planned end, then those without one.
    fn releases(&self, spot: Spot, now: Time) -> Vec<Release<'_>> {
        let node = &self.pools[spot.pool].nodes[spot.slot];
        let stopping = node.stopping.iter();
        let stopping =
            stopping.map(|(unit, demand)| (Some(now), self.entries[*unit].id, &**demand));
        let residents = node.residents.iter().map(|resident| {
            let end = self.entries[resident.unit].planned_end(resident.started.0);
            (end.map(|end| end.max(now)), resident.id, &*resident.demand)
        });
        let mut all: Vec<_> = stopping.chain(residents).collect();
        all.sort_by_key(|(end, id, _)| (end.is_none(), *end, *id));
        all
    }

    /// The earliest start on any node where all blockers have planned ends.
    fn earliest(&self, class: usize, rank: &Rank, near: &[Near], now: Time) -> Option<Time> {
        let mut left = ENDS;
        let usable = near.iter().map(|near| near.spot).take_while(|spot| {
            let is_open = left > 0;
            let node = &self.pools[spot.pool].nodes[spot.slot];
            left = left.saturating_sub(node.residents.len() + node.stopping.len());
            is_open
        });
        let usable = usable.filter(|&spot| self.is_spread_ok(class, spot));
        usable.filter_map(|spot| self.path(class, rank, spot, now)?.at).min()
    }
}

impl Explanation {
    fn settled(unit: UnitId, verdict: Verdict, place: Place) -> Self {
        Self {
            unit,
            verdict,
            wait: None,
            position: None,
            place: Some(place),
            shortages: Vec::new(),
            blockers: Vec::new(),
            earliest: None,
        }
    }
}

impl fmt::Display for Explanation {
    /// A short status message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Placed => return f.write_str("Placed."),
            Verdict::Stopping => return f.write_str("Stopping."),
            Verdict::Never => {
                f.write_str("Cannot be placed: no usable node is large enough")?;
            }
            Verdict::NotNow => match self.wait {
                Some(PendingReason::Yielding) => {
                    f.write_str("Waiting for preemption victims to stop")?;
                }
                Some(PendingReason::Budget) => {
                    write!(f, "Waiting for capacity: {}", PendingReason::Budget)?;
                }
                _ => match self.position.unwrap_or(1) {
                    LAST_POSITION => write!(
                        f,
                        "Waiting for capacity at queue position {LAST_POSITION} or later"
                    )?,
                    position => write!(f, "Waiting for capacity at queue position {position}")?,
                },
            },
        }
        if let Some(nearest) = self.shortages.iter().find(|s| s.missing != Resources::default()) {
            write!(f, "; node {} is short of {}", nearest.place, nearest.missing)?;
        }
        match self.earliest {
            Some(at) => write!(f, ". Estimated start {at}."),
            None => f.write_str("."),
        }
    }
}
