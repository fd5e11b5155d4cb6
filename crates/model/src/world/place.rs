//! Units, as the world is told of them: who waits, who is where, who is gone.

use std::sync::Arc;

use super::class::{Class, Key, Seat};
use super::node::Resident;
use super::unit::{Place, Spot, Target, Unit, UnitId};
use super::vector::Want;
use super::{Entry, State, World};
use crate::Time;

impl World {
    /// Says that a unit waits. One that is known to wait keeps its place and its reservation.
    pub fn wait(&mut self, unit: &Unit) {
        let known = self.same(unit);
        if known.is_some_and(|at| matches!(self.entries[at].state, State::Waiting { .. })) {
            return;
        }
        self.gone(unit.id);
        let at = self.enter(unit, State::Waiting { hold: None, said: None });
        self.line_up(at);
    }

    /// Says that a unit is on a node since `started`: at loading, or that a start is done.
    pub fn placed(&mut self, unit: &Unit, place: Place, started: Time) {
        let now = State::Placed { place: place.clone(), spot: None, started };
        let is_there = self.same(unit).is_some_and(|at| match &self.entries[at].state {
            State::Placed { place: there, started: since, .. } => {
                *there == place && *since == started
            }
            _ => false,
        });
        if is_there {
            return;
        }
        self.gone(unit.id);
        let at = self.enter(unit, now);
        self.settle_on(at, place, started);
    }

    /// Says that a unit was told to stop, for somebody or for its own sake. Its capacity counts as
    /// coming until it is [`World::gone`] or waits again.
    pub fn stopping(&mut self, id: UnitId, by: Option<UnitId>) {
        if let Some(&unit) = self.index.get(&id) {
            self.stop(unit, by);
        }
    }

    /// Says that a unit is not on a node (any more) and waits: it yielded and has stopped, or its
    /// start could not be made durable.
    pub fn requeue(&mut self, id: UnitId) {
        let Some(&unit) = self.index.get(&id) else { return };
        if matches!(self.entries[unit].state, State::Waiting { .. }) {
            return;
        }
        self.vacate(unit);
        self.entries[unit].state = State::Waiting { hold: None, said: None };
        self.line_up(unit);
    }

    /// Says that a unit is no more: it ended, or is no longer wanted and has stopped.
    pub fn gone(&mut self, id: UnitId) {
        let Some(unit) = self.index.remove(&id) else { return };
        if matches!(self.entries[unit].state, State::Waiting { .. }) {
            self.drop_hold(unit);
            self.leave_line(unit);
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

    /// The unit's number, if all that is known of it is as it says.
    fn same(&self, unit: &Unit) -> Option<usize> {
        let &at = self.index.get(&unit.id)?;
        let entry = &self.entries[at];
        let known = (entry.priority, entry.since, entry.run_for, entry.ends_at);
        let is_same = known == (unit.priority, unit.since, unit.run_for, unit.ends_at)
            && *self.classes[entry.class].key == Key::of(unit);
        is_same.then_some(at)
    }

    fn enter(&mut self, unit: &Unit, state: State) -> usize {
        let class = self.class_for(Key::of(unit));
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

    /// Puts a unit on a node, if there is such a node.
    pub(super) fn settle_on(&mut self, unit: usize, place: Place, started: Time) {
        let site = self.sites.get(&place.cluster);
        let spot = site
            .and_then(|site| Some(Spot { pool: site.pool, slot: *site.nodes.get(&place.node)? }));
        match spot {
            Some(spot) => self.occupy(unit, spot, started),
            None => {
                self.homeless.entry(place.clone()).or_default().insert(unit);
                self.entries[unit].state = State::Placed { place, spot: None, started };
            }
        }
    }

    pub(super) fn occupy(&mut self, unit: usize, spot: Spot, started: Time) {
        let want = self.read(self.entries[unit].class, spot.pool);
        let entry = &mut self.entries[unit];
        let place = {
            let node = &self.pools[spot.pool].nodes[spot.slot];
            Place { cluster: node.cluster, node: node.name.clone() }
        };
        entry.state = State::Placed { place, spot: Some(spot), started };
        let (id, priority, started) = (entry.id, entry.priority, std::cmp::Reverse(started));
        if self.classes[entry.class].key.apart.is_some() {
            self.apart.insert((id.owner, spot));
        }
        self.pools[spot.pool].occupy(spot.slot, Resident { priority, started, id, unit, want });
        self.recheck_promises(spot);
    }

    /// Takes a unit off its node, or out of the list of those whose node is not known.
    pub(super) fn vacate(&mut self, unit: usize) {
        let entry = &self.entries[unit];
        let (State::Placed { place, spot, started } | State::Stopping { place, spot, started, .. }) =
            &entry.state
        else {
            return;
        };
        let Some(spot) = *spot else {
            let place = place.clone();
            if let Some(units) = self.homeless.get_mut(&place) {
                units.remove(&unit);
                if units.is_empty() {
                    self.homeless.remove(&place);
                }
            }
            return;
        };
        self.apart.remove(&(entry.id.owner, spot));
        let (id, priority, started) = (entry.id, entry.priority, *started);
        match entry.state {
            State::Stopping { .. } => self.pools[spot.pool].release(spot.slot, unit),
            _ => self.pools[spot.pool].vacate(spot.slot, id, priority, started, false),
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
            self.touch(spot);
        }
    }

    /// How a class's request reads in a pool.
    fn read(&mut self, class: usize, pool: usize) -> Want {
        let class = &mut self.classes[class];
        if let Some((_, want)) = class.reads.iter().find(|(other, _)| *other == pool) {
            return want.clone();
        }
        let want = match class.want(pool) {
            Some(want) => want.clone(),
            None => self.pools[pool].learn(&class.key.request),
        };
        class.reads.push((pool, want.clone()));
        self.check_stale(pool);
        want
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
        self.seat(at);
        at
    }

    fn drop_class(&mut self, class: usize) {
        self.unseat(class);
        self.set_over_budget(class, false);
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

    /// Gives a class its seats in the queues of the pools that it may use.
    pub(super) fn seat(&mut self, class: usize) {
        let key = self.classes[class].key.clone();
        let pools = match key.target {
            Target::Any => vec![self.ensure_pool(Some(key.organization)), self.ensure_pool(None)],
            Target::Cluster(cluster) => {
                let site = self.sites.get(&cluster);
                let own = |owner| owner == Some(key.organization);
                let usable = site.filter(|site| site.owner.is_none() || own(site.owner));
                usable.map(|site| site.pool).into_iter().collect()
            }
        };
        for pool in pools {
            let want = self.pools[pool].kinds.read(&key.request);
            if want.is_none() {
                self.pools[pool].puzzled.insert(class);
            }
            self.classes[class].seats.push(Seat { pool, number: None, want });
        }
        self.show_head(class);
    }

    pub(super) fn unseat(&mut self, class: usize) {
        self.hide_head(class);
        for seat in std::mem::take(&mut self.classes[class].seats) {
            if let Some(taken) = seat.number {
                self.pools[seat.pool].queue.leave(taken);
            }
            if seat.want.is_none() {
                self.pools[seat.pool].puzzled.remove(&class);
            }
        }
    }
}
