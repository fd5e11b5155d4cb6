//! Finds nodes with free capacity, with capacity about to be free, or held for lower ranks.

use std::ops::{Bound, ControlFlow};

use super::class::CandidatePool;
use super::score::Score;
use super::tree::Tree;
use super::unit::{Rank, Spot, Target};
use super::vector::fits;
use super::{Hold, State, World};

impl World {
    /// The group of nodes that a class may use: the whole pool, or the cluster it is pinned to.
    pub(super) fn group(&self, class: usize, pool: usize) -> Option<usize> {
        match self.classes[class].key.target {
            Target::Any if self.pools[pool].groups.is_empty() => None,
            Target::Any => Some(0),
            Target::Cluster(cluster) => {
                let slot = self.clusters.get(&cluster)?.nodes.values().next()?;
                Some(self.pools[pool].nodes[*slot].group)
            }
        }
    }

    /// Is anti-affinity satisfied on the node?
    pub(super) fn is_spread_ok(&self, class: usize, spot: Spot) -> bool {
        self.classes[class]
            .key
            .spread_owner
            .is_none_or(|owner| !self.spread_spots.contains(&(owner, spot)))
    }

    /// Do all constraints except capacity allow the node?
    pub(super) fn may_use(&self, class: usize, spot: Spot) -> bool {
        self.matches(class, spot) && self.is_spread_ok(class, spot)
    }

    /// Does the node match the selector and the target?
    pub(super) fn matches(&self, class: usize, spot: Spot) -> bool {
        let key = &self.classes[class].key;
        let node = &self.pools[spot.pool].nodes[spot.slot];
        let is_target = match key.target {
            Target::Any => true,
            Target::Cluster(cluster) => cluster == node.cluster,
        };
        is_target && node.has_labels(&key.selector)
    }

    /// Does the class fit on the node when empty?
    pub(super) fn fits_empty(&self, class: usize, spot: Spot, demand: &[(usize, i64)]) -> bool {
        fits(demand, self.pools[spot.pool].capacity(spot.slot))
            && self.matches(class, spot)
            && self.fits_empty_machine(class, spot.pool)
    }

    /// Could the class start on the node if it were empty?
    pub(super) fn could_use(&self, class: usize, spot: Spot) -> bool {
        let demand = self.classes[class].demand(spot.pool);
        demand.is_some_and(|demand| self.fits_empty(class, spot, demand))
            && self.is_spread_ok(class, spot)
    }

    /// Does any node, or any open one, fit the class when empty?
    pub(super) fn fits_any_empty(
        &self,
        class: usize,
        candidate: &CandidatePool,
        open_only: bool,
    ) -> bool {
        let Some(demand) = &candidate.demand else { return false };
        let Some(group) = self.group(class, candidate.pool) else { return false };
        let pool = &self.pools[candidate.pool];
        pool.groups[group].order.iter().any(|(_, slot)| {
            let is_open = pool.nodes[slot].is_open || !open_only;
            is_open && self.fits_empty(class, Spot { pool: candidate.pool, slot }, demand)
        })
    }

    /// Does no node fit the class, even when empty?
    pub(super) fn never_fits(&mut self, class: usize) -> bool {
        if let Some((version, never)) = self.classes[class].never
            && version == self.structure_version
        {
            return never;
        }
        let never =
            !self.classes[class].candidates.iter().any(|s| self.fits_any_empty(class, s, false));
        self.classes[class].never = Some((self.structure_version, never));
        never
    }

    /// Has the class's organization preemptions left?
    pub(super) fn may_preempt(&self, class: usize) -> bool {
        self.preemptions_left(self.classes[class].key.organization) > 0
    }

    fn own_hold(&self, unit: usize) -> Option<Spot> {
        match self.entries[unit].state {
            State::Pending { hold: Some(Hold { spot, .. }), .. } => Some(spot),
            _ => None,
        }
    }

    /// A node where a unit can start now: the one held for it, else one with free capacity, else
    /// one held for a lower rank.
    pub(super) fn start_node(&self, class: usize, unit: usize, rank: &Rank) -> Option<Spot> {
        self.held_node(class, unit, rank, false)
            .or_else(|| {
                let mut candidates = self.classes[class].candidates.iter();
                candidates.find_map(|s| self.best_free_node(class, s, rank))
            })
            .or_else(|| self.lower_ranked_hold(class, rank, false))
    }

    /// The same, counting the capacity of stopping units as free.
    pub(super) fn future_node(&self, class: usize, unit: usize, rank: &Rank) -> Option<Spot> {
        self.held_node(class, unit, rank, true)
            .or_else(|| {
                let usable = |s: &&CandidatePool| self.fits_machine(class, s.pool, rank, true);
                let mut candidates = self.classes[class].candidates.iter().filter(usable);
                candidates.find_map(|s| self.first_future_node(class, s))
            })
            .or_else(|| self.lower_ranked_hold(class, rank, true))
    }

    fn held_node(&self, class: usize, unit: usize, rank: &Rank, future: bool) -> Option<Spot> {
        let spot = self.own_hold(unit)?;
        self.suits(class, spot, rank, future).then_some(spot)
    }

    fn suits(&self, class: usize, spot: Spot, rank: &Rank, future: bool) -> bool {
        let Some(demand) = self.classes[class].demand(spot.pool) else { return false };
        let pool = &self.pools[spot.pool];
        let fits = if future {
            pool.fits_future(spot.slot, demand, rank)
        } else {
            pool.fits_now(spot.slot, demand, rank)
        };
        fits && self.may_use(class, spot) && self.fits_machine(class, spot.pool, rank, future)
    }

    fn lower_ranked_hold(&self, class: usize, rank: &Rank, future: bool) -> Option<Spot> {
        let behind = (Bound::Excluded(rank), Bound::Unbounded);
        self.classes[class].candidates.iter().find_map(|candidate| {
            let holds = self.pools[candidate.pool].holds.range::<Rank, _>(behind).rev();
            let mut spots = holds.map(|(_, &(_, slot))| Spot { pool: candidate.pool, slot });
            spots.find(|&spot| self.suits(class, spot, rank, future))
        })
    }

    /// The best of the first few nodes with free capacity.
    fn best_free_node(&self, class: usize, candidate: &CandidatePool, rank: &Rank) -> Option<Spot> {
        let demand = candidate.demand.as_ref()?;
        if !self.fits_machine(class, candidate.pool, rank, false) {
            return None;
        }
        let pool = &self.pools[candidate.pool];
        let mut best: Option<(Score, usize)> = None;
        let mut left = self.settings.candidates;
        self.each_free_node(class, candidate, false, &mut |position, slot| {
            let score = Score::new(pool, slot, demand, position);
            if best.is_none_or(|(other, _)| score < other) {
                best = Some((score, slot));
            }
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        best.map(|(_, slot)| Spot { pool: candidate.pool, slot })
    }

    /// The first node with enough capacity once stopping units have stopped.
    pub(super) fn first_future_node(
        &self,
        class: usize,
        candidate: &CandidatePool,
    ) -> Option<Spot> {
        let mut found = None;
        self.each_free_node(class, candidate, true, &mut |_, slot| {
            found = Some(Spot { pool: candidate.pool, slot });
            ControlFlow::Break(())
        });
        found
    }

    /// Visits the nodes with free capacity that is not held, in the order of the group.
    fn each_free_node(
        &self,
        class: usize,
        candidate: &CandidatePool,
        future: bool,
        visit: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) {
        let (Some(demand), Some(group_number)) =
            (&candidate.demand, self.group(class, candidate.pool))
        else {
            return;
        };
        let pool = &self.pools[candidate.pool];
        let group = &pool.groups[group_number];
        let mut offer = |position: usize| {
            let Some(slot) = group.order.get(position) else { return ControlFlow::Continue(()) };
            let target = Spot { pool: candidate.pool, slot };
            if pool.nodes[slot].is_open && self.may_use(class, target) {
                return visit(position, slot);
            }
            ControlFlow::Continue(())
        };
        if let Some(only) = group.order.only() {
            if pool.has_unheld(only, demand, future) {
                let _ = offer(pool.nodes[only].positions[usize::from(group_number > 0)]);
            }
            return;
        }
        let tree: &Tree = if future { &group.future } else { &group.open };
        tree.each_fit(demand, &mut offer);
    }
}
