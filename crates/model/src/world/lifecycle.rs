//! Reports units to the model: pending, placed, stopping, removed.

use std::sync::Arc;

use super::class::{CandidatePool, Class, Key};
use super::node::Resident;
use super::share::Side;
use super::unit::{Place, Spot, Target, Unit, UnitId};
use super::vector::Amounts;
use super::{Entry, State, World};
use crate::Time;

impl World {
    /// Reports a pending unit. If it is already pending, it keeps its rank and its reservation.
    pub fn add_pending(&mut self, unit: &Unit) {
        let existing = self.find_unchanged(unit);
        if existing.is_some_and(|at| matches!(self.entries[at].state, State::Pending { .. })) {
            return;
        }
        self.remove(unit.id);
        let at = self.insert_entry(unit, State::Pending { hold: None, reason: None });
        self.enqueue(at);
    }

    /// Reports a unit that is on a node since `started`, on load or after a start.
    pub fn set_placed(&mut self, unit: &Unit, place: Place, started: Time) {
        let now = State::Placed { place: place.clone(), spot: None, started };
        let is_unchanged =
            self.find_unchanged(unit).is_some_and(|at| match &self.entries[at].state {
                State::Placed { place: current, started: since, .. } => {
                    *current == place && *since == started
                }
                _ => false,
            });
        if is_unchanged {
            return;
        }
        self.remove(unit.id);
        let at = self.insert_entry(unit, now);
        self.assign(at, place, started);
    }

    /// Reports a unit that is stopping, optionally preempted by another. Its capacity counts as
    /// about to be free until it is [removed](World::remove) or [requeued](World::requeue).
    pub fn set_stopping(&mut self, id: UnitId, by: Option<UnitId>) {
        if let Some(&unit) = self.index.get(&id) {
            self.stop(unit, by);
        }
    }

    /// Returns a unit to the queue: it was preempted and has stopped, or its start could not be
    /// persisted.
    pub fn requeue(&mut self, id: UnitId) {
        let Some(&unit) = self.index.get(&id) else { return };
        if matches!(self.entries[unit].state, State::Pending { .. }) {
            return;
        }
        self.vacate(unit);
        self.entries[unit].state = State::Pending { hold: None, reason: None };
        self.enqueue(unit);
    }

    /// Removes a unit that has ended or was deleted and has stopped.
    pub fn remove(&mut self, id: UnitId) {
        let Some(unit) = self.index.remove(&id) else { return };
        if matches!(self.entries[unit].state, State::Pending { .. }) {
            self.drop_hold(unit);
            self.dequeue(unit);
        } else {
            self.vacate(unit);
        }
        let class = self.entries[unit].class;
        self.classes[class].units -= 1;
        self.vacant.push(unit);
        if self.classes[class].units == 0 {
            self.drop_class(class);
        }
    }

    /// The index of the unit, if it is registered and unchanged.
    fn find_unchanged(&self, unit: &Unit) -> Option<usize> {
        let &at = self.index.get(&unit.id)?;
        let entry = &self.entries[at];
        let current = (entry.priority, entry.since, entry.run_for, entry.ends_at);
        let is_same = current == (unit.priority, unit.since, unit.run_for, unit.ends_at)
            && *self.classes[entry.class].key == Key::new(unit);
        is_same.then_some(at)
    }

    fn insert_entry(&mut self, unit: &Unit, state: State) -> usize {
        let class = self.class_for(Key::new(unit));
        self.classes[class].units += 1;
        let (id, priority, since) = (unit.id, unit.priority, unit.since);
        let (run_for, ends_at) = (unit.run_for, unit.ends_at);
        let entry = Entry { id, class, priority, since, run_for, ends_at, state };
        let at = match self.vacant.pop() {
            Some(at) => {
                self.entries[at] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.index.insert(id, at);
        at
    }

    /// Assigns a unit to a node, which may not be registered yet.
    pub(super) fn assign(&mut self, unit: usize, place: Place, started: Time) {
        let entry = self.clusters.get(&place.cluster);
        let spot = entry.and_then(|entry| {
            Some(Spot { pool: entry.pool, slot: *entry.nodes.get(&place.node)? })
        });
        match spot {
            Some(spot) => self.occupy(unit, spot, started),
            None => {
                self.unassigned.entry(place.clone()).or_default().insert(unit);
                self.entries[unit].state = State::Placed { place, spot: None, started };
            }
        }
    }

    pub(super) fn occupy(&mut self, unit: usize, spot: Spot, started: Time) {
        let demand = self.demand_in(self.entries[unit].class, spot.pool);
        let entry = &mut self.entries[unit];
        let place = {
            let node = &self.pools[spot.pool].nodes[spot.slot];
            Place { cluster: node.cluster, node: node.name.clone() }
        };
        entry.state = State::Placed { place, spot: Some(spot), started };
        let (id, priority, started) = (entry.id, entry.priority, std::cmp::Reverse(started));
        let key = &self.classes[entry.class].key;
        let organization = key.organization;
        if key.spread_owner.is_some() {
            self.spread_spots.insert((id.owner, spot));
        }
        let resident = Resident { priority, started, id, unit, organization, demand };
        let group = self.pools[spot.pool].nodes[spot.slot].group;
        self.occupy_machine(&resident, spot.pool);
        self.pools[spot.pool].occupy(spot.slot, resident);
        self.note_growth(Side::Cluster(spot.pool, group));
        self.recheck_promises(spot);
    }

    /// Removes a unit from its node, registered or not.
    pub(super) fn vacate(&mut self, unit: usize) {
        let entry = &self.entries[unit];
        let (State::Placed { place, spot, started } | State::Stopping { place, spot, started, .. }) =
            &entry.state
        else {
            return;
        };
        let Some(spot) = *spot else {
            let place = place.clone();
            if let Some(units) = self.unassigned.get_mut(&place) {
                units.remove(&unit);
                if units.is_empty() {
                    self.unassigned.remove(&place);
                }
            }
            return;
        };
        self.spread_spots.remove(&(entry.id.owner, spot));
        let (id, priority, started) = (entry.id, entry.priority, *started);
        let is_stopping = matches!(entry.state, State::Stopping { .. });
        if is_stopping {
            self.pools[spot.pool].release(spot.slot, unit);
        } else {
            self.pools[spot.pool].vacate(spot.slot, id, priority, started, false);
        }
        if let Some(machine) = self.machine_of(unit, spot.pool) {
            let machines = &mut self.machines.pool;
            if is_stopping {
                machines.release(machine, unit);
            } else {
                machines.vacate(machine, id, priority, started, false);
            }
            self.touch_machine(machine);
        }
        self.touch(spot);
    }

    pub(super) fn stop(&mut self, unit: usize, by: Option<UnitId>) {
        let entry = &mut self.entries[unit];
        let State::Placed { place, spot, started } = entry.state.clone() else { return };
        entry.state = State::Stopping { place, spot, started, by };
        let (id, priority) = (entry.id, entry.priority);
        if let Some(spot) = spot {
            self.pools[spot.pool].vacate(spot.slot, id, priority, started, true);
            if let Some(machine) = self.machine_of(unit, spot.pool) {
                self.machines.pool.vacate(machine, id, priority, started, true);
                self.touch_machine(machine);
            }
            self.touch(spot);
        }
    }

    /// The request of a class in the columns of a pool.
    fn demand_in(&mut self, class: usize, pool: usize) -> Amounts {
        let class = &mut self.classes[class];
        if let Some((_, demand)) = class.resident_demands.iter().find(|(other, _)| *other == pool) {
            return demand.clone();
        }
        let demand = match class.demand(pool) {
            Some(demand) => demand.clone(),
            None => self.pools[pool].intern(&class.key.request),
        };
        class.resident_demands.push((pool, demand.clone()));
        self.check_stale(pool);
        demand
    }

    fn class_for(&mut self, key: Key) -> usize {
        if let Some(&class) = self.class_of.get(&key) {
            return class;
        }
        let key = Arc::new(key);
        let new = Class::new(key.clone());
        let at = match self.vacant_classes.pop() {
            Some(at) => {
                self.classes[at] = new;
                at
            }
            None => {
                self.classes.push(new);
                self.classes.len() - 1
            }
        };
        if let Target::Cluster(cluster) = key.target {
            self.pinned.entry(cluster).or_default().insert(at);
        }
        self.class_of.insert(key, at);
        self.join_pools(at);
        at
    }

    fn drop_class(&mut self, class: usize) {
        self.leave_pools(class);
        self.set_over_budget(class, false);
        self.set_share_blocked(class, false);
        let key = &self.classes[class].key;
        if let Target::Cluster(cluster) = key.target
            && let Some(classes) = self.pinned.get_mut(&cluster)
        {
            classes.remove(&class);
            if classes.is_empty() {
                self.pinned.remove(&cluster);
            }
        }
        self.class_of.remove(key);
        self.vacant_classes.push(class);
    }

    /// Determines the pools that a class may use and publishes its head there.
    pub(super) fn join_pools(&mut self, class: usize) {
        let key = self.classes[class].key.clone();
        let pools = match key.target {
            Target::Any => self.usable_pools(key.organization),
            Target::Cluster(cluster) => {
                let entry = self.clusters.get(&cluster);
                let own = |owner| owner == Some(key.organization);
                let usable = entry.filter(|entry| entry.owner.is_none() || own(entry.owner));
                usable.map(|entry| entry.pool).into_iter().collect()
            }
        };
        for pool in pools {
            let demand = self.pools[pool].kinds.resolve(&key.request);
            if demand.is_none() {
                self.pools[pool].unresolved.insert(class);
            }
            let machine = self.pools[pool].machine.filter(|_| key.is_container);
            let machine = machine.map(|slot| self.machine_candidate(slot, &key.request));
            let candidate = CandidatePool { pool, leaf: None, demand, machine };
            self.classes[class].candidates.push(candidate);
        }
        self.publish_head(class);
    }

    pub(super) fn leave_pools(&mut self, class: usize) {
        self.unpublish_head(class);
        for candidate in std::mem::take(&mut self.classes[class].candidates) {
            if let Some(leaf) = candidate.leaf {
                self.pools[candidate.pool].queue.remove(leaf);
            }
            if candidate.demand.is_none() {
                self.pools[candidate.pool].unresolved.remove(&class);
            }
        }
    }
}
