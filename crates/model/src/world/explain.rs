//! Explains a unit's placement with numbers, so that users can act on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use serde::Serialize;

use super::class::CandidatePool;
use super::decision::PendingReason;
use super::node::{Node, amount};
use super::pool::Pool;
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
    /// Missing capacity of the node's machine, which runs several clusters' containers.
    pub missing_on_machine: Resources,
    /// Is the node or its machine too small, even when empty?
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

/// The planned end of a unit, and the capacity that it releases of a node and of its machine.
struct Release<'a> {
    end: Option<Time>,
    id: UnitId,
    on_node: &'a [(usize, i64)],
    on_machine: &'a [(usize, i64)],
}

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
                    let lack_permille = pool.lack_permille(spot.slot, demand, rank)
                        + self.machine_lack_permille(candidate, rank);
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
        let missing_on_machine = self.machine_shortage(class, spot.pool, rank);
        Shortage { place: self.place(spot), missing, missing_on_machine, is_too_small }
    }

    fn machine_lack_permille(&self, candidate: &CandidatePool, rank: &Rank) -> i128 {
        let machine = candidate.machine.as_ref();
        let demand = machine.and_then(|machine| Some((machine.slot, machine.demand.as_ref()?)));
        demand.map_or(0, |(slot, demand)| self.machines.pool.lack_permille(slot, demand, rank))
    }

    /// What the machine of a pool lacks for a class.
    fn machine_shortage(&self, class: usize, pool: usize, rank: &Rank) -> Resources {
        let candidate = self.classes[class].candidate(pool);
        let Some(machine) = candidate.and_then(|c| c.machine.as_ref()) else {
            return Resources::default();
        };
        let request = &self.classes[class].key.request;
        let machines = &self.machines.pool;
        let free = (0..machines.kinds.len())
            .map(|k| (k, machines.future_free_for(machine.slot, k, rank).max(0)));
        request.shortage(&machines.kinds.to_resources(free))
    }

    /// The units that have to end on a node, by planned end.
    fn path(&self, class: usize, rank: &Rank, spot: Spot, now: Time) -> Option<Path> {
        let pool = &self.pools[spot.pool];
        let candidate = self.classes[class].candidate(spot.pool)?;
        let mut missing = missing_now(pool, spot.slot, candidate.demand.as_ref()?, rank);
        let mut on_machine = Vec::new();
        let mut machine_slot = None;
        if let Some(machine) = &candidate.machine {
            let demand = machine.demand.as_ref()?;
            on_machine = missing_now(&self.machines.pool, machine.slot, demand, rank);
            let is_short = on_machine.iter().any(|(_, missing)| *missing > 0);
            machine_slot = Some(machine.slot).filter(|_| is_short);
        }
        let mut path = Path { ends: Vec::new(), at: Some(now) };
        for release in self.releases(spot, machine_slot, now) {
            if missing.iter().chain(&on_machine).all(|(_, missing)| *missing <= 0) {
                break;
            }
            let helps = |missing: &[(usize, i64)], released: &[(usize, i64)]| {
                missing.iter().any(|&(k, m)| m > 0 && amount(released, k) > 0)
            };
            if !helps(&missing, release.on_node) && !helps(&on_machine, release.on_machine) {
                continue;
            }
            for (k, m) in &mut missing {
                *m -= amount(release.on_node, *k);
            }
            for (k, m) in &mut on_machine {
                *m -= amount(release.on_machine, *k);
            }
            path.ends.push(release.id);
            path.at = path.at.and_then(|at| release.end.map(|end| at.max(end)));
        }
        let fits = missing.iter().chain(&on_machine).all(|(_, missing)| *missing <= 0);
        path.ends.truncate(UNITS);
        fits.then_some(path)
    }

    /// All units on a node, and on its machine if that is short: stopping ones, then by planned end,
    /// then those without one.
    fn releases(&self, spot: Spot, machine: Option<usize>, now: Time) -> Vec<Release<'_>> {
        let node = &self.pools[spot.pool].nodes[spot.slot];
        let mut all: Vec<Release> = self
            .units_on(node, now)
            .map(|(unit, end, on_node)| {
                let entry = &self.entries[unit];
                let on_machine = self.classes[entry.class].machine_demand.as_deref();
                let takes = machine.is_some() && self.machine_of(unit, spot.pool) == machine;
                let on_machine = on_machine.filter(|_| takes).unwrap_or_default();
                Release { end, id: entry.id, on_node, on_machine }
            })
            .collect();
        if let Some(machine) = machine {
            let here: BTreeSet<UnitId> = all.iter().map(|release| release.id).collect();
            let elsewhere = self.units_on(&self.machines.pool.nodes[machine], now);
            all.extend(elsewhere.filter_map(|(unit, end, on_machine)| {
                let id = self.entries[unit].id;
                let is_elsewhere = !here.contains(&id);
                is_elsewhere.then_some(Release { end, id, on_node: &[], on_machine })
            }));
        }
        all.sort_by_key(|release| (release.end.is_none(), release.end, release.id));
        all
    }

    /// The units on a node: each with its planned end and what it has of the node.
    fn units_on<'a>(
        &'a self,
        node: &'a Node,
        now: Time,
    ) -> impl Iterator<Item = (usize, Option<Time>, &'a [(usize, i64)])> {
        let stopping = node.stopping.iter();
        let stopping = stopping.map(move |(unit, demand)| (*unit, Some(now), &**demand));
        stopping.chain(node.residents.iter().map(move |resident| {
            let end = self.entries[resident.unit].planned_end(resident.started.0);
            (resident.unit, end.map(|end| end.max(now)), &*resident.demand)
        }))
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

/// What a node lacks now for a unit of this rank, by column.
fn missing_now(
    pool: &Pool,
    slot: usize,
    demand: &[(usize, i64)],
    rank: &Rank,
) -> Vec<(usize, i64)> {
    let node = &pool.nodes[slot];
    let free = |k| pool.free(slot, k).saturating_sub(node.held_ahead(rank, k));
    demand.iter().map(|&(k, amount)| (k, amount.saturating_sub(free(k)))).collect()
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
                Some(PendingReason::FairShare) => f.write_str(
                    "Waiting for capacity: organizations within their fair share are not preempted",
                )?,
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
        } else if let Some(nearest) =
            self.shortages.iter().find(|s| s.missing_on_machine != Resources::default())
        {
            write!(f, "; the machine is short of {}", nearest.missing_on_machine)?;
        }
        match self.earliest {
            Some(at) => write!(f, ". Estimated start {at}."),
            None => f.write_str("."),
        }
    }
}
