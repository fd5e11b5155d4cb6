//! Why a unit waits, with all numbers: for a user who wants to do something about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use serde::Serialize;

use super::class::Seat;
use super::decision::Wait;
use super::unit::{Place, Rank, Spot, UnitId};
use super::{Hold, State, World};
use crate::{Resources, Time};

/// How many nodes are named, the nearest first.
const NODES: usize = 5;
/// How many units are named that would have to end.
const UNITS: usize = 20;
/// Up to where places in the queue are counted.
pub const LAST_POSITION: usize = if cfg!(test) { 5 } else { 1000 };
/// How many units are looked at for when they end, on the nearest nodes.
const ENDS: usize = 20_000;

/// Can it run at all?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It has its capacity.
    Placed,
    /// It gives its capacity back.
    Stopping,
    /// It waits.
    NotNow,
    /// It waits for a node that does not exist.
    Never,
}

/// What is missing on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// Which node.
    pub place: Place,
    /// What is missing of what will be free and is not kept for others; nothing if only other
    /// constraints are in the way.
    pub missing: Resources,
    /// Is the node too small, even when empty?
    pub is_too_small: bool,
}

/// Why a unit is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Who.
    pub unit: UnitId,
    /// Can it run at all?
    pub verdict: Verdict,
    /// Why it waits, if it does and has been looked at.
    pub wait: Option<Wait>,
    /// Its place in the queue, from 1: one more than how many wait for the same nodes before it.
    /// Counted up to [`LAST_POSITION`], which stands for all from there on.
    pub position: Option<usize>,
    /// Where it is, or where room is kept for it.
    pub place: Option<Place>,
    /// What is missing, on the nodes where that is least.
    pub shortages: Vec<Shortage>,
    /// Who would have to end first, on the nearest node, the soonest first.
    pub blockers: Vec<UnitId>,
    /// When it can start if all ends as planned and nobody before it takes the room. In a very
    /// large pool only the nearest nodes are looked at: it may be sooner than this.
    pub earliest: Option<Time>,
}

/// When somebody gives back what, if that is known.
type Release<'a> = (Option<Time>, UnitId, &'a [(usize, i64)]);

/// A node that could be used, in order: what lacks least comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Near {
    is_too_small: bool,
    lack_permille: i128,
    position: usize,
    spot: Spot,
}

/// What has to happen on one node.
struct Path {
    ends: Vec<UnitId>,
    /// When that will be, if all of them have a planned end.
    at: Option<Time>,
}

impl World {
    /// Explains where a unit is and why. Costs as much as there are nodes that it may use, however
    /// many wait: it is for one who asks, not for every round.
    pub fn explain(&mut self, id: UnitId, now: Time) -> Option<Explanation> {
        self.settle();
        let &unit = self.index.get(&id)?;
        let entry = &self.entries[unit];
        Some(match entry.state.clone() {
            State::Placed { place, .. } => Explanation::settled(id, Verdict::Placed, place),
            State::Stopping { place, .. } => Explanation::settled(id, Verdict::Stopping, place),
            State::Waiting { hold, said } => self.explain_wait(unit, hold, said, now),
        })
    }

    pub(super) fn explain_wait(
        &mut self,
        unit: usize,
        hold: Option<Hold>,
        wait: Option<Wait>,
        now: Time,
    ) -> Explanation {
        let (class, rank) = (self.entries[unit].class, self.entries[unit].rank());
        let never = self.never_fits(class);
        let near = self.nearest_nodes(class, &rank);
        let kept = hold.map(|hold| hold.spot);
        let first = kept.or_else(|| near.iter().find(|n| !n.is_too_small).map(|n| n.spot));
        let path = first.and_then(|spot| self.path(class, &rank, spot, now));
        let earliest = self.earliest(class, &rank, &near, now);
        Explanation {
            unit: rank.id,
            verdict: if never { Verdict::Never } else { Verdict::NotNow },
            wait,
            position: Some(self.position(class, &rank)),
            place: kept.map(|spot| self.place(spot)),
            shortages: near.iter().take(NODES).map(|n| self.shortage(class, &rank, n)).collect(),
            blockers: path.map(|path| path.ends).unwrap_or_default(),
            earliest: earliest.filter(|_| !never),
        }
    }

    /// One more than how many before `rank` wait for a pool that the class may use.
    pub(super) fn position(&self, class: usize, rank: &Rank) -> usize {
        let mut left = LAST_POSITION - 1;
        let mut seen = BTreeSet::from([class]);
        let mut count = |line: &BTreeMap<Rank, usize>| {
            left -= line.range(..rank).take(left).count();
            left > 0
        };
        let mut is_open = count(&self.classes[class].line);
        for seat in &self.classes[class].seats {
            self.pools[seat.pool].queue.each_before(rank, &mut |other| {
                if seen.insert(other) {
                    is_open = count(&self.classes[other].line);
                }
                if is_open { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        let pools = self.classes[class].seats.iter().map(|seat| &self.pools[seat.pool]);
        let promised = pools.flat_map(|pool| pool.promised.range(..rank).take(left));
        let promised: BTreeSet<&Rank> = promised.map(|(rank, _)| rank).collect();
        LAST_POSITION - left.saturating_sub(promised.len())
    }

    /// The nodes that a class may use, those first that lack the least; too small ones last.
    fn nearest_nodes(&self, class: usize, rank: &Rank) -> Vec<Near> {
        let mut nodes = Vec::new();
        for seat in &self.classes[class].seats {
            let pool = &self.pools[seat.pool];
            let Some(want) = &seat.want else { continue };
            for (position, spot) in self.nodes_of(class, seat) {
                if self.matches(class, spot) && pool.nodes[spot.slot].is_open {
                    let is_too_small = !self.could_fit(class, spot, want);
                    let lack_permille = pool.lack_permille(spot.slot, want, rank);
                    nodes.push(Near { is_too_small, lack_permille, position, spot });
                }
            }
        }
        nodes.sort_unstable();
        nodes
    }

    fn nodes_of(&self, class: usize, seat: &Seat) -> impl Iterator<Item = (usize, Spot)> {
        let pool = seat.pool;
        let group = self.group(class, pool).map(|group| &self.pools[pool].groups[group]);
        let nodes = group.into_iter().flat_map(|group| group.order.iter());
        nodes.map(move |(position, slot)| (position, Spot { pool, slot }))
    }

    fn shortage(&self, class: usize, rank: &Rank, near: &Near) -> Shortage {
        let Near { spot, is_too_small, .. } = *near;
        let pool = &self.pools[spot.pool];
        let want = self.classes[class].want(spot.pool).cloned().unwrap_or_default();
        let missing = want.iter().map(|&(k, amount)| {
            let room =
                pool.soon(spot.slot, k).saturating_sub(pool.nodes[spot.slot].held_for(rank, k));
            (k, amount.saturating_sub(room.max(0)))
        });
        let missing = pool.kinds.name(missing.filter(|(_, missing)| *missing > 0));
        Shortage { place: self.place(spot), missing, is_too_small }
    }

    /// Who has to end on a node, in the order in which they will as far as that is known.
    fn path(&self, class: usize, rank: &Rank, spot: Spot, now: Time) -> Option<Path> {
        let pool = &self.pools[spot.pool];
        let want = self.classes[class].want(spot.pool)?;
        let node = &pool.nodes[spot.slot];
        let room = |k| pool.free(spot.slot, k).saturating_sub(node.held_for(rank, k));
        let mut missing: Vec<(usize, i64)> =
            want.iter().map(|&(k, amount)| (k, amount.saturating_sub(room(k)))).collect();
        let mut path = Path { ends: Vec::new(), at: Some(now) };
        for (end, unit, gives) in self.releases(spot, now) {
            if missing.iter().all(|(_, missing)| *missing <= 0) {
                break;
            }
            let helps = |&(k, m): &(usize, i64)| m > 0 && super::node::amount(gives, k) > 0;
            if !missing.iter().any(helps) {
                continue;
            }
            for (k, m) in &mut missing {
                *m -= super::node::amount(gives, *k);
            }
            path.ends.push(unit);
            path.at = path.at.and_then(|at| end.map(|end| at.max(end)));
        }
        let fits = missing.iter().all(|(_, missing)| *missing <= 0);
        path.ends.truncate(UNITS);
        fits.then_some(path)
    }

    /// All on a node with what they hold: who stops, then by planned end, then who has none.
    fn releases(&self, spot: Spot, now: Time) -> Vec<Release<'_>> {
        let node = &self.pools[spot.pool].nodes[spot.slot];
        let stopping = node.leaving.iter();
        let stopping = stopping.map(|(unit, want)| (Some(now), self.entries[*unit].id, &**want));
        let on = node.residents.iter().map(|resident| {
            let end = self.entries[resident.unit].planned_end(resident.started.0);
            (end.map(|end| end.max(now)), resident.id, &*resident.want)
        });
        let mut all: Vec<_> = stopping.chain(on).collect();
        all.sort_by_key(|(end, id, _)| (end.is_none(), *end, *id));
        all
    }

    /// The soonest that a node has room, if those who have to end have planned ends.
    fn earliest(&self, class: usize, rank: &Rank, near: &[Near], now: Time) -> Option<Time> {
        let mut left = ENDS;
        let usable = near.iter().map(|near| near.spot).take_while(|spot| {
            let is_open = left > 0;
            let node = &self.pools[spot.pool].nodes[spot.slot];
            left = left.saturating_sub(node.residents.len() + node.leaving.len());
            is_open
        });
        let usable = usable.filter(|&spot| self.is_apart(class, spot));
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
    /// A short sentence, for a status.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Placed => return f.write_str("Has its capacity."),
            Verdict::Stopping => return f.write_str("Is stopping."),
            Verdict::Never => {
                f.write_str("Can never run: no node that it may use is large enough")?;
            }
            Verdict::NotNow => match self.wait {
                Some(Wait::Yielding) => f.write_str("Waits for others to stop")?,
                Some(Wait::Budget) => write!(f, "Waits: it {}", Wait::Budget)?,
                _ => match self.position.unwrap_or(1) {
                    LAST_POSITION => write!(f, "Waits at position {LAST_POSITION} or later")?,
                    position => write!(f, "Waits at position {position}")?,
                },
            },
        }
        if let Some(nearest) = self.shortages.iter().find(|s| s.missing != Resources::default()) {
            write!(f, "; the nearest is {} more on {}", nearest.missing, nearest.place)?;
        }
        match self.earliest {
            Some(at) => write!(f, "; can start at {at} if all ends as planned."),
            None => f.write_str("."),
        }
    }
}
