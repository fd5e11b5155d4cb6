//! One scheduling round: processes work items, best rank first, until none is left.
//!
//! Invariant between rounds: no head of a class fits on any node, not even by preemption, unless
//! the class or the node has a work item. Every change queues what it may have made possible, so a
//! round examines everything that can have changed.

use std::collections::{BTreeSet, HashMap};

use super::decision::{
    Backfill, BackfillReason, Decisions, PendingReason, Preemption, Reservation, Start,
};
use super::machine::{MACHINES, MachineServable};
use super::pool::Snapshot;
use super::preempt::Victims;
use super::queue::Probe;
use super::unit::{Rank, Spot};
use super::{Hold, State, World};
use crate::Time;

/// A work item of a scheduling round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// A unit with a promised hold.
    Promised(usize),
    /// The head of a class.
    Class(usize),
    /// The head of a class that could use a touched node.
    Node(Spot, usize),
}

/// The work items of a round.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkItems {
    pub(super) items: BTreeSet<(Rank, Item)>,
    touched: HashMap<Spot, Touched>,
    unexamined: Vec<Spot>,
}

/// A node whose free capacity may have grown.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    /// Ranks up to this one are done.
    after: Option<Rank>,
    /// The next head, which has a work item.
    next: Option<(Rank, usize)>,
}

impl WorkItems {
    /// Examines the node from the start of the queue.
    pub(super) fn touch(&mut self, spot: Spot) {
        self.remove(spot);
        self.touched.insert(spot, Touched::default());
        self.unexamined.push(spot);
    }

    pub(super) fn remove(&mut self, spot: Spot) {
        if let Some(Touched { next: Some((rank, class)), .. }) = self.touched.remove(&spot) {
            self.items.remove(&(rank, Item::Node(spot, class)));
        }
    }
}

impl World {
    /// Runs a scheduling round of at most about `steps` steps.
    ///
    /// Decisions apply to the model at once: deciding again yields nothing unless the limit was
    /// reached. The caller persists them and reports the outcome ([`World::set_placed`],
    /// [`World::set_stopping`], [`World::requeue`], [`World::remove`]).
    pub fn decide(&mut self, now: Time, steps: usize) -> Decisions {
        self.refresh_pools();
        let mut out = Decisions::default();
        while out.steps < steps.max(1) {
            if self.step(now, &mut out)
                || self.recheck_shares()
                || self.queue_due_reservation(now, &mut out)
            {
                continue;
            }
            if !self.grant_reservations(steps.max(1), &mut out) && self.work.unexamined.is_empty() {
                out.is_complete = self.due_pools.is_empty();
                break;
            }
        }
        self.report_newly_pending(&mut out);
        out
    }

    /// Rebuilds the indexes of stale pools.
    pub(super) fn refresh_pools(&mut self) {
        for pool in std::mem::take(&mut self.stale_pools) {
            self.pools[pool].rebuild();
            for class in std::mem::take(&mut self.pools[pool].unresolved) {
                self.leave_pools(class);
                self.join_pools(class);
            }
            self.handle_restructured(pool);
        }
    }

    /// Handles a change of a pool's nodes or their capacity: reservations may become possible.
    pub(super) fn handle_restructured(&mut self, pool: usize) {
        self.structure_version += 1;
        for class in std::mem::take(&mut self.pools[pool].overdue) {
            self.set_due(class);
        }
        self.track_due_heads(pool);
    }

    /// Rechecks the pool's due heads after a node changed for the worse.
    pub(super) fn handle_degraded(&mut self, spot: Spot, before: &Snapshot) {
        let pool = &self.pools[spot.pool];
        if pool.due_heads.is_empty() || !pool.is_degraded(spot.slot, before) {
            return;
        }
        let has_equivalent = pool.has_equivalent(spot.slot, before);
        let cluster = pool.nodes[spot.slot].cluster;
        let concerned: Vec<usize> = if has_equivalent {
            self.pinned.get(&cluster).into_iter().flatten().copied().collect()
        } else {
            pool.due_heads.values().copied().collect()
        };
        for class in concerned {
            self.recheck_reservation(class, spot.pool);
        }
    }

    /// Makes a class due again if no node of the pool can hold a reservation for it any more.
    pub(super) fn recheck_reservation(&mut self, class: usize, pool: usize) {
        let Some(rank) = self.classes[class].published else { return };
        if self.pools[pool].due_heads.contains_key(&rank)
            && self.reservation_pool(class) != Some(pool)
        {
            self.pools[pool].due_heads.remove(&rank);
            self.track_due_heads(pool);
            self.set_due(class);
        }
    }

    /// Processes one work item; false if there is none.
    fn step(&mut self, now: Time, out: &mut Decisions) -> bool {
        if let Some(spot) = self.work.unexamined.pop() {
            out.steps += 1;
            self.examine(spot);
            return true;
        }
        let Some((rank, item)) = self.work.items.pop_first() else { return false };
        out.steps += 1;
        match item {
            Item::Promised(unit) => self.try_promised(unit, now, out),
            Item::Class(class) => self.try_head(class, now, out),
            Item::Node(spot, class) => self.serve(spot, class, rank, now, out),
        }
        true
    }

    /// Queues a node whose free capacity may have grown.
    pub(super) fn touch(&mut self, spot: Spot) {
        self.work.touch(spot);
        self.recheck_promises(spot);
    }

    /// Queues the units that hold capacity on a node.
    pub(super) fn recheck_promises(&mut self, spot: Spot) {
        for hold in &self.pools[spot.pool].nodes[spot.slot].holds {
            self.work.items.insert((hold.rank, Item::Promised(hold.unit)));
        }
    }

    /// Finds the next head that could use a touched node.
    fn examine(&mut self, spot: Spot) {
        let Some(touched) = self.work.touched.get(&spot).copied() else { return };
        if touched.next.is_some() {
            return;
        }
        let next = if spot.pool == MACHINES {
            let probe = MachineServable { world: self, machine: spot.slot };
            self.machines.entries[spot.slot].queue.next(touched.after.as_ref(), &probe)
        } else {
            let probe = Servable { world: self, spot };
            self.pools[spot.pool].queue.next(touched.after.as_ref(), &probe)
        };
        match next {
            None => drop(self.work.touched.remove(&spot)),
            Some((rank, class)) => {
                self.work.items.insert((rank, Item::Node(spot, class)));
                let next = Some((rank, class));
                self.work.touched.insert(spot, Touched { next, ..touched });
            }
        }
    }

    fn serve(&mut self, spot: Spot, class: usize, rank: Rank, now: Time, out: &mut Decisions) {
        self.work.touched.insert(spot, Touched { after: Some(rank), next: None });
        self.work.unexamined.push(spot);
        if self.classes[class].published == Some(rank) {
            self.try_head(class, now, out);
        }
    }

    /// Starts a promised unit, keeps it waiting, or revokes its hold.
    fn try_promised(&mut self, unit: usize, now: Time, out: &mut Decisions) {
        let entry = &self.entries[unit];
        let State::Pending { hold: Some(Hold { spot, is_promised: true }), .. } = entry.state
        else {
            return;
        };
        let (class, rank) = (entry.class, entry.rank());
        let pool = &self.pools[spot.pool];
        let Some(demand) = self.classes[class].demand(spot.pool) else { return };
        let is_spread_ok = self.is_spread_ok(class, spot);
        let (now_fits, fits) = (
            pool.fits_now(spot.slot, demand, &rank)
                && self.fits_machine(class, spot.pool, &rank, false),
            pool.fits_future(spot.slot, demand, &rank)
                && self.fits_machine(class, spot.pool, &rank, true),
        );
        if is_spread_ok && now_fits {
            self.start(unit, spot, now, out);
        } else if !is_spread_ok || !fits {
            self.revoke_hold(unit);
        }
    }

    /// Starts the head of a class, promises it a node, or preempts for it.
    fn try_head(&mut self, class: usize, now: Time, out: &mut Decisions) {
        let Some((rank, unit)) = self.classes[class].head() else { return };
        self.set_over_budget(class, false);
        self.set_share_blocked(class, false);
        if let Some(spot) = self.start_node(class, unit, &rank) {
            return self.start(unit, spot, now, out);
        }
        if let Some(spot) = self.future_node(class, unit, &rank) {
            return self.promise(unit, spot, out);
        }
        match self.find_victims(class, &rank, now) {
            Ok(victims) => self.preempt(unit, &victims, out),
            Err(wait) => {
                self.set_over_budget(class, wait == PendingReason::Budget);
                self.set_share_blocked(class, wait == PendingReason::FairShare);
                self.join_machine_queues(class, &rank);
                self.set_reason(unit, wait, out);
            }
        }
    }

    pub(super) fn set_over_budget(&mut self, class: usize, is_over: bool) {
        let inside = &mut self.classes[class];
        if inside.is_over_budget == is_over {
            return;
        }
        inside.is_over_budget = is_over;
        let key = (inside.key.organization, class);
        if is_over {
            self.over_budget.insert(key)
        } else {
            self.over_budget.remove(&key)
        };
    }

    pub(super) fn start(&mut self, unit: usize, spot: Spot, now: Time, out: &mut Decisions) {
        self.drop_hold(unit);
        self.dequeue(unit);
        let rank = self.entries[unit].rank();
        let backfill = self.find_overtaken(&rank, spot);
        out.starts.push(Start { unit: rank.id, place: self.place(spot), backfill });
        self.occupy(unit, spot, now);
    }

    fn promise(&mut self, unit: usize, spot: Spot, out: &mut Decisions) {
        self.hold(unit, Hold { spot, is_promised: true });
        let (id, place) = (self.entries[unit].id, self.place(spot));
        out.reservations.push(Reservation { unit: id, place, is_promised: true });
        self.set_reason(unit, PendingReason::Yielding, out);
    }

    fn preempt(&mut self, unit: usize, victims: &Victims, out: &mut Decisions) {
        let by = self.entries[unit].id;
        for &victim in &victims.units {
            // It may be on another node, or in another cluster on the same machine.
            if let State::Placed { place, .. } = &self.entries[victim].state {
                let (victim, place) = (self.entries[victim].id, place.clone());
                out.preemptions.push(Preemption { victim, by, place });
            }
            self.stop(victim, Some(by));
        }
        let organization = self.classes[self.entries[unit].class].key.organization;
        if let Some(budget) = self.budgets.get_mut(&organization) {
            let count = u32::try_from(victims.units.len()).unwrap_or(u32::MAX);
            budget.used = budget.used.saturating_add(count);
        }
        self.promise(unit, victims.spot, out);
    }

    /// The best-ranked pending unit before `rank` that could use the node if it were empty.
    fn find_overtaken(&self, rank: &Rank, spot: Spot) -> Option<Backfill> {
        let pool = &self.pools[spot.pool];
        let waiting = pool.queue.next(None, &Ahead { world: self, spot, rank });
        let mut promised = pool.promised.range(..rank);
        let promised = promised.find(|(_, unit)| self.could_use(self.entries[**unit].class, spot));
        let waiting = waiting.map(|(first, _)| (first, BackfillReason::DoesNotFit));
        let promised = promised.map(|(first, _)| (*first, BackfillReason::Promised));
        let (first, why) = waiting.into_iter().chain(promised).min_by_key(|(first, _)| *first)?;
        Some(Backfill { ahead: first.id, why })
    }

    /// Reports the reason of newly pending units that are not the head of their class.
    fn report_newly_pending(&mut self, out: &mut Decisions) {
        for id in std::mem::take(&mut self.newly_pending) {
            let Some(&unit) = self.index.get(&id) else { continue };
            let entry = &self.entries[unit];
            let is_head = self.classes[entry.class].published == Some(entry.rank());
            match entry.state {
                State::Pending { hold: Some(Hold { is_promised: true, .. }), .. } => {
                    self.set_reason(unit, PendingReason::Yielding, out);
                }
                // The step limit was reached before its turn.
                State::Pending { reason: None, .. } if is_head => {
                    self.newly_pending.insert(id);
                }
                State::Pending { reason: None, .. } => {
                    self.set_reason(unit, PendingReason::Behind, out);
                }
                _ => {}
            }
        }
    }
}

/// Matches heads that a node could serve, if need be by preemption.
struct Servable<'a> {
    world: &'a World,
    spot: Spot,
}

impl Probe for Servable<'_> {
    fn may_match(&self, best: &Rank, least: &[i64]) -> bool {
        let pool = &self.world.pools[self.spot.pool];
        let short = |(k, &least): (usize, &i64)| {
            least > 0 && least > pool.free_preempting(self.spot.slot, k, best)
        };
        pool.nodes[self.spot.slot].is_open && !least.iter().enumerate().any(short)
    }

    fn matches(&self, class: usize, head: &Rank) -> bool {
        let pool = &self.world.pools[self.spot.pool];
        let Some(demand) = self.world.classes[class].demand(self.spot.pool) else { return false };
        let slot = self.spot.slot;
        let fits = if self.world.may_preempt(class) {
            pool.fits_preempting(slot, demand, head)
                && self.world.is_preemption_fair(class, self.spot, head)
        } else {
            pool.fits_future(slot, demand, head)
        };
        fits && self.world.may_use(class, self.spot)
    }
}

/// Matches heads before a rank that could use a node if it were empty.
struct Ahead<'a> {
    world: &'a World,
    spot: Spot,
    rank: &'a Rank,
}

impl Probe for Ahead<'_> {
    fn may_match(&self, best: &Rank, _: &[i64]) -> bool {
        best < self.rank
    }

    fn matches(&self, class: usize, _: &Rank) -> bool {
        self.world.could_use(class, self.spot)
    }
}
