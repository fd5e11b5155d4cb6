//! The queue and reservations: held capacity for units whose victims are stopping, and for heads
//! that have been pending for long. A hold blocks units of lower rank, not those of better rank.

use super::decision::{Decisions, PendingReason, PendingUnit, Reservation};
use super::round::Item;
use super::unit::{Rank, Spot};
use super::{Hold, State, World, node};
use crate::Time;

/// Number of candidate nodes that are compared for a reservation.
const RESERVATION_CANDIDATES: usize = if cfg!(test) { 2 } else { 256 };

impl World {
    pub(super) fn enqueue(&mut self, unit: usize) {
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        self.classes[class].pending.insert(rank, unit);
        self.newly_pending.insert(rank.id);
        self.refresh_head(class);
    }

    pub(super) fn dequeue(&mut self, unit: usize) {
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        self.classes[class].pending.remove(&rank);
        self.refresh_head(class);
    }

    /// Updates the indexes if the head of a class has changed.
    fn refresh_head(&mut self, class: usize) {
        let head = self.classes[class].head().map(|(rank, _)| rank);
        if head == self.classes[class].published {
            return;
        }
        self.unpublish_head(class);
        self.publish_head(class);
        if head.is_none() {
            for candidate in &mut self.classes[class].candidates {
                if let Some(leaf) = candidate.leaf.take() {
                    self.pools[candidate.pool].queue.remove(leaf);
                }
            }
        }
    }

    pub(super) fn unpublish_head(&mut self, class: usize) {
        let inside = &mut self.classes[class];
        let Some(rank) = inside.published.take() else { return };
        self.leave_machine_queues(class);
        self.count_request(class, -1);
        let inside = &mut self.classes[class];
        self.work.items.remove(&(rank, Item::Class(class)));
        if let Some(at) = inside.due.take() {
            self.due.remove(&(at, class));
        }
        for candidate in &inside.candidates {
            let pool = &mut self.pools[candidate.pool];
            pool.overdue.remove(&class);
            if pool.due_heads.remove(&rank).is_some() && pool.due_heads.is_empty() {
                self.due_pools.remove(&candidate.pool);
            }
        }
    }

    pub(super) fn publish_head(&mut self, class: usize) {
        let Some((rank, _)) = self.classes[class].head() else { return };
        self.classes[class].published = Some(rank);
        self.count_request(class, 1);
        for candidate in &mut self.classes[class].candidates {
            if let Some(demand) = &candidate.demand {
                let queue = &mut self.pools[candidate.pool].queue;
                let leaf = *candidate.leaf.get_or_insert_with(|| queue.insert(class));
                queue.set(leaf, demand, Some(rank));
            }
        }
        self.queue_attempt(class);
        self.set_due(class);
    }

    /// Queues another attempt for the head of a class.
    pub(super) fn queue_attempt(&mut self, class: usize) {
        if let Some(rank) = self.classes[class].published {
            self.work.items.insert((rank, Item::Class(class)));
        }
    }

    /// Schedules when the head of a class becomes due for a reservation.
    pub(super) fn set_due(&mut self, class: usize) {
        let Some((rank, unit)) = self.classes[class].head() else { return };
        let has_hold = matches!(self.entries[unit].state, State::Pending { hold: Some(_), .. });
        if has_hold || self.classes[class].due.is_some() {
            return;
        }
        let at = rank.since + self.settings.reserve_after;
        self.classes[class].due = Some(at);
        self.due.insert((at, class));
    }

    /// Releases the hold of a unit.
    pub(super) fn drop_hold(&mut self, unit: usize) {
        let rank = self.entries[unit].rank();
        let class = self.entries[unit].class;
        let State::Pending { hold, .. } = &mut self.entries[unit].state else { return };
        let Some(hold) = hold.take() else { return };
        self.pools[hold.spot.pool].release_hold(hold.spot.slot, &rank);
        let machine = self.machine_of(unit, hold.spot.pool);
        if let Some(machine) = machine {
            self.machines.pool.release_hold(machine, &rank);
        }
        if hold.is_promised {
            for candidate in &self.classes[class].candidates {
                self.pools[candidate.pool].promised.remove(&rank);
            }
        }
        self.track_due_heads(hold.spot.pool);
        self.touch(hold.spot);
        if let Some(machine) = machine {
            self.touch_machine(machine);
        }
    }

    /// Revokes the hold of a unit and returns it to the queue.
    pub(super) fn revoke_hold(&mut self, unit: usize) {
        self.drop_hold(unit);
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        self.classes[class].pending.insert(rank, unit);
        self.refresh_head(class);
        self.set_due(class);
    }

    /// Holds capacity for a unit on a node. A promised unit only needs time: it leaves the queue.
    pub(super) fn hold(&mut self, unit: usize, hold: Hold) {
        self.drop_hold(unit);
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        let pool = hold.spot.pool;
        let Some(demand) = self.classes[class].demand(pool).cloned() else { return };
        if let State::Pending { hold: slot, .. } = &mut self.entries[unit].state {
            *slot = Some(hold);
        }
        self.pools[pool].add_hold(hold.spot.slot, node::Hold { rank, unit, demand });
        if let Some(machine) = self.machine_of(unit, pool) {
            let demand = self.machine_demand(class);
            self.machines.pool.add_hold(machine, node::Hold { rank, unit, demand });
            self.recheck_machine_promises(machine);
        }
        if hold.is_promised {
            for candidate in &self.classes[class].candidates {
                self.pools[candidate.pool].promised.insert(rank, unit);
            }
            self.dequeue(unit);
        } else {
            self.pools[pool].aged.insert(rank, unit);
        }
        self.touch(hold.spot);
    }

    /// Restores a reservation that was decided before.
    pub fn restore_reservation(&mut self, reservation: &Reservation) {
        // The request may name kinds that were added later.
        self.refresh_pools();
        let Some(&unit) = self.index.get(&reservation.unit) else { return };
        let Some(entry) = self.clusters.get(&reservation.place.cluster) else { return };
        let Some(&slot) = entry.nodes.get(&reservation.place.node) else { return };
        let target = Spot { pool: entry.pool, slot };
        if matches!(self.entries[unit].state, State::Pending { .. }) {
            self.hold(unit, Hold { spot: target, is_promised: reservation.is_promised });
            let class = self.entries[unit].class;
            if self.classes[class].head().is_some_and(|(_, head)| head == unit) {
                self.clear_due(class);
            }
        }
    }

    /// Adds the next due head to a pool's due heads; false if none is due.
    pub(super) fn queue_due_reservation(&mut self, now: Time, out: &mut Decisions) -> bool {
        let Some(&(at, class)) = self.due.first().filter(|(at, _)| *at <= now) else {
            return false;
        };
        out.steps += 1;
        self.due.remove(&(at, class));
        self.classes[class].due = None;
        let Some((rank, unit)) = self.classes[class].head() else { return true };
        let chosen = self.reservation_pool(class);
        // It may be queued in another pool, from before this one had a node for it.
        for candidate in &self.classes[class].candidates {
            self.pools[candidate.pool].due_heads.remove(&rank);
        }
        let better = self.classes[class].candidates.iter().map(|c| c.pool);
        for pool in better.take_while(|pool| Some(*pool) != chosen) {
            self.pools[pool].overdue.insert(class);
        }
        let has_hold = matches!(self.entries[unit].state, State::Pending { hold: Some(_), .. });
        if let Some(pool) = chosen.filter(|_| !has_hold) {
            self.pools[pool].due_heads.insert(rank, class);
            self.track_due_heads(pool);
        }
        true
    }

    fn clear_due(&mut self, class: usize) {
        if let Some(at) = self.classes[class].due.take() {
            self.due.remove(&(at, class));
        }
    }

    pub(super) fn track_due_heads(&mut self, pool: usize) {
        if self.pools[pool].due_heads.is_empty() {
            self.due_pools.remove(&pool);
        } else {
            self.due_pools.insert(pool);
        }
    }

    /// The first pool with a node that fits the class when empty.
    pub(super) fn reservation_pool(&self, class: usize) -> Option<usize> {
        let mut candidates = self.classes[class].candidates.iter();
        candidates.find(|c| self.fits_any_empty(class, c, true)).map(|c| c.pool)
    }

    /// Grants reservations to due heads, best rank first, within the remaining steps. Returns
    /// whether any was granted.
    pub(super) fn grant_reservations(&mut self, steps: usize, out: &mut Decisions) -> bool {
        let pools: Vec<usize> = self.due_pools.iter().copied().collect();
        let before = out.reservations.len();
        for pool in pools {
            let mut is_left = true;
            while is_left && out.steps < steps {
                out.steps += 1;
                is_left = self.grant_reservation(pool, out);
            }
            if !is_left {
                // No further reservation is possible until a hold is released.
                self.due_pools.remove(&pool);
            }
        }
        // By unit, because pools are not ordered.
        out.reservations[before..].sort_by_key(|reservation| reservation.unit);
        out.reservations.len() > before
    }

    /// Grants a reservation to the pool's first due head. The number of reserved nodes is limited
    /// so that capacity is not hoarded; a better rank replaces the lowest.
    fn grant_reservation(&mut self, pool: usize, out: &mut Decisions) -> bool {
        let inside = &self.pools[pool];
        let Some((&rank, &class)) = inside.due_heads.first_key_value() else {
            return false;
        };
        let limit =
            (inside.groups[0].order.len() * self.settings.max_reserved_permille / 1000).max(1);
        let last = inside.aged.last_key_value().map(|(last, &unit)| (*last, unit));
        let replaced = last.filter(|_| inside.aged.len() >= limit);
        if replaced.is_some_and(|(last, _)| last <= rank) {
            return false;
        }
        let Some(slot) = self.reservation_node(class, pool, &rank) else {
            self.pools[pool].due_heads.remove(&rank);
            self.set_due(class);
            return true;
        };
        if let Some((_, last)) = replaced {
            self.drop_hold(last);
            self.set_due(self.entries[last].class);
        }
        self.pools[pool].due_heads.remove(&rank);
        let Some((_, unit)) = self.classes[class].head() else { return true };
        let target = Spot { pool, slot };
        self.hold(unit, Hold { spot: target, is_promised: false });
        let place = self.place(target);
        out.reservations.push(Reservation { unit: rank.id, place, is_promised: false });
        true
    }

    /// The node with the smallest shortage for a class, among those that fit it when empty. Nodes
    /// without holds are preferred, and only the first few of them are compared.
    fn reservation_node(&self, class: usize, pool: usize, rank: &Rank) -> Option<usize> {
        let inside = &self.pools[pool];
        let demand = self.classes[class].demand(pool)?;
        let mut left = RESERVATION_CANDIDATES;
        let mut best = None;
        for (position, slot) in inside.groups[self.group(class, pool)?].order.iter() {
            let node = &inside.nodes[slot];
            if !node.is_open || !self.fits_empty(class, Spot { pool, slot }, demand) {
                continue;
            }
            let shortage = inside.lack_permille(slot, demand, rank);
            let score = (node.holds.len(), shortage, position);
            if best.is_none_or(|(other, _)| score < other) {
                best = Some((score, slot));
            }
            left -= usize::from(node.holds.is_empty());
            if left == 0 {
                break;
            }
        }
        best.map(|(_, slot)| slot)
    }

    pub(super) fn set_reason(&mut self, unit: usize, wait: PendingReason, out: &mut Decisions) {
        let id = self.entries[unit].id;
        if let State::Pending { reason, .. } = &mut self.entries[unit].state
            && *reason != Some(wait)
        {
            *reason = Some(wait);
            out.pending.push(PendingUnit { unit: id, reason: wait });
        }
    }
}
