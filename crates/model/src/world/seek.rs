//! Finding a node: open now, coming soon, or kept for somebody who ranks behind.

use std::ops::{Bound, ControlFlow};

use super::class::Seat;
use super::score::Score;
use super::tree::Tree;
use super::unit::{Rank, Spot, Target};
use super::vector::fits;
use super::{Hold, State, World};

impl World {
    /// Which nodes of a pool a class is searched on: all, or those of the cluster it is pinned to.
    pub(super) fn group(&self, class: usize, pool: usize) -> Option<usize> {
        match self.classes[class].key.target {
            Target::Any if self.pools[pool].groups.is_empty() => None,
            Target::Any => Some(0),
            Target::Cluster(cluster) => {
                let slot = self.sites.get(&cluster)?.nodes.values().next()?;
                Some(self.pools[pool].nodes[*slot].group)
            }
        }
    }

    /// Is no sibling on the node, if that matters?
    pub(super) fn is_apart(&self, class: usize, spot: Spot) -> bool {
        self.classes[class].key.apart.is_none_or(|owner| !self.apart.contains(&(owner, spot)))
    }

    /// Do all constraints of a class allow the node, whatever room there is?
    pub(super) fn may_use(&self, class: usize, spot: Spot) -> bool {
        self.matches(class, spot) && self.is_apart(class, spot)
    }

    /// Has the node the labels, and is it of the right cluster?
    pub(super) fn matches(&self, class: usize, spot: Spot) -> bool {
        let key = &self.classes[class].key;
        let node = &self.pools[spot.pool].nodes[spot.slot];
        let is_target = match key.target {
            Target::Any => true,
            Target::Cluster(cluster) => cluster == node.cluster,
        };
        is_target && node.has_labels(&key.selector)
    }

    /// Would it fit on the node if that were empty?
    pub(super) fn could_fit(&self, class: usize, spot: Spot, want: &[(usize, i64)]) -> bool {
        fits(want, self.pools[spot.pool].capacity(spot.slot)) && self.matches(class, spot)
    }

    /// Would a class use the node if it were empty?
    pub(super) fn covets(&self, class: usize, spot: Spot) -> bool {
        let want = self.classes[class].want(spot.pool);
        want.is_some_and(|want| self.could_fit(class, spot, want)) && self.is_apart(class, spot)
    }

    /// Is there a node (that takes units now) where it would fit if that were empty?
    pub(super) fn fits_empty(&self, class: usize, seat: &Seat, open_only: bool) -> bool {
        let Some(want) = &seat.want else { return false };
        let Some(group) = self.group(class, seat.pool) else { return false };
        let pool = &self.pools[seat.pool];
        pool.groups[group].order.iter().any(|(_, slot)| {
            let is_open = pool.nodes[slot].is_open || !open_only;
            is_open && self.could_fit(class, Spot { pool: seat.pool, slot }, want)
        })
    }

    /// Can a class never be served by the nodes there are?
    pub(super) fn never_fits(&mut self, class: usize) -> bool {
        if let Some((version, never)) = self.classes[class].never
            && version == self.structure
        {
            return never;
        }
        let never = !self.classes[class].seats.iter().any(|s| self.fits_empty(class, s, false));
        self.classes[class].never = Some((self.structure, never));
        never
    }

    /// May the class's organization still preempt anybody?
    pub(super) fn may_preempt(&self, class: usize) -> bool {
        self.preemptions_left(self.classes[class].key.organization) > 0
    }

    fn own_hold(&self, unit: usize) -> Option<Spot> {
        match self.entries[unit].state {
            State::Waiting { hold: Some(Hold { spot, .. }), .. } => Some(spot),
            _ => None,
        }
    }

    /// A node where a unit can start now: where room is kept for it, where room is open, and last
    /// where room is kept for somebody who ranks behind it.
    pub(super) fn seek_start(&self, class: usize, unit: usize, rank: &Rank) -> Option<Spot> {
        self.seek_own(class, unit, rank, false)
            .or_else(|| self.classes[class].seats.iter().find_map(|s| self.seek_open(class, s)))
            .or_else(|| self.seek_kept(class, rank, false))
    }

    /// The same for room that comes as soon as those who are stopping have stopped.
    pub(super) fn seek_coming(&self, class: usize, unit: usize, rank: &Rank) -> Option<Spot> {
        self.seek_own(class, unit, rank, true)
            .or_else(|| self.classes[class].seats.iter().find_map(|s| self.seek_soon(class, s)))
            .or_else(|| self.seek_kept(class, rank, true))
    }

    fn seek_own(&self, class: usize, unit: usize, rank: &Rank, soon: bool) -> Option<Spot> {
        let spot = self.own_hold(unit)?;
        self.suits(class, spot, rank, soon).then_some(spot)
    }

    fn suits(&self, class: usize, spot: Spot, rank: &Rank, soon: bool) -> bool {
        let Some(want) = self.classes[class].want(spot.pool) else { return false };
        let pool = &self.pools[spot.pool];
        let fits = if soon {
            pool.fits_soon(spot.slot, want, rank)
        } else {
            pool.fits_now(spot.slot, want, rank)
        };
        fits && self.may_use(class, spot)
    }

    fn seek_kept(&self, class: usize, rank: &Rank, soon: bool) -> Option<Spot> {
        let behind = (Bound::Excluded(rank), Bound::Unbounded);
        self.classes[class].seats.iter().find_map(|seat| {
            let holds = self.pools[seat.pool].holds.range::<Rank, _>(behind).rev();
            let mut spots = holds.map(|(_, &(_, slot))| Spot { pool: seat.pool, slot });
            spots.find(|&spot| self.suits(class, spot, rank, soon))
        })
    }

    /// The best of the first few nodes where there is room.
    fn seek_open(&self, class: usize, seat: &Seat) -> Option<Spot> {
        let want = seat.want.as_ref()?;
        let pool = &self.pools[seat.pool];
        let mut best: Option<(Score, usize)> = None;
        let mut left = self.settings.candidates;
        self.each_room(class, seat, false, &mut |position, slot| {
            let score = Score::of(pool, slot, want, position);
            if best.is_none_or(|(other, _)| score < other) {
                best = Some((score, slot));
            }
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        best.map(|(_, slot)| Spot { pool: seat.pool, slot })
    }

    /// The first node where there will be room.
    fn seek_soon(&self, class: usize, seat: &Seat) -> Option<Spot> {
        let mut found = None;
        self.each_room(class, seat, true, &mut |_, slot| {
            found = Some(Spot { pool: seat.pool, slot });
            ControlFlow::Break(())
        });
        found
    }

    /// Visits the nodes with room that is kept for nobody, in the order of the group.
    fn each_room(
        &self,
        class: usize,
        seat: &Seat,
        soon: bool,
        visit: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) {
        let (Some(want), Some(group_number)) = (&seat.want, self.group(class, seat.pool)) else {
            return;
        };
        let pool = &self.pools[seat.pool];
        let group = &pool.groups[group_number];
        let mut offer = |position: usize| {
            let Some(slot) = group.order.get(position) else { return ControlFlow::Continue(()) };
            let here = Spot { pool: seat.pool, slot };
            if pool.nodes[slot].is_open && self.may_use(class, here) {
                return visit(position, slot);
            }
            ControlFlow::Continue(())
        };
        if let Some(only) = group.order.only() {
            if pool.has_room(only, want, soon) {
                let _ = offer(pool.nodes[only].positions[usize::from(group_number > 0)]);
            }
            return;
        }
        let tree: &Tree = if soon { &group.coming } else { &group.open };
        tree.each_fit(want, &mut offer);
    }
}
