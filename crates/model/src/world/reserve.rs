//! Lines, and room that is kept: for those whose room is being made, and for those at the top who
//! have waited long. Kept room is closed to all who rank behind, and open to all who rank before.

use super::decision::{Decisions, Reservation, Wait, Waiting};
use super::round::Item;
use super::unit::{Rank, Spot};
use super::{Hold, State, World, node};
use crate::Time;

/// How many nodes are compared for room to be kept on.
const COMPARED: usize = if cfg!(test) { 2 } else { 256 };

impl World {
    pub(super) fn line_up(&mut self, unit: usize) {
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        self.classes[class].line.insert(rank, unit);
        self.news.insert(rank.id);
        self.refresh_class(class);
    }

    pub(super) fn leave_line(&mut self, unit: usize) {
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        self.classes[class].line.remove(&rank);
        self.refresh_class(class);
    }

    /// Tells all indexes if a class has another head than they know.
    fn refresh_class(&mut self, class: usize) {
        let head = self.classes[class].head().map(|(rank, _)| rank);
        if head == self.classes[class].shown {
            return;
        }
        self.hide_head(class);
        self.show_head(class);
        if head.is_none() {
            for seat in &mut self.classes[class].seats {
                if let Some(taken) = seat.number.take() {
                    self.pools[seat.pool].queue.leave(taken);
                }
            }
        }
    }

    pub(super) fn hide_head(&mut self, class: usize) {
        let inside = &mut self.classes[class];
        let Some(rank) = inside.shown.take() else { return };
        self.agenda.todo.remove(&(rank, Item::Class(class)));
        if let Some(at) = inside.due.take() {
            self.due.remove(&(at, class));
        }
        for seat in &inside.seats {
            let pool = &mut self.pools[seat.pool];
            pool.overdue.remove(&class);
            if pool.wanting.remove(&rank).is_some() && pool.wanting.is_empty() {
                self.wanting.remove(&seat.pool);
            }
        }
    }

    pub(super) fn show_head(&mut self, class: usize) {
        let Some((rank, _)) = self.classes[class].head() else { return };
        self.classes[class].shown = Some(rank);
        for seat in &mut self.classes[class].seats {
            if let Some(want) = &seat.want {
                let queue = &mut self.pools[seat.pool].queue;
                let taken = *seat.number.get_or_insert_with(|| queue.sit(class));
                queue.set(taken, want, Some(rank));
            }
        }
        self.put_on_agenda(class);
        self.set_due(class);
    }

    /// A head has its turn again.
    pub(super) fn put_on_agenda(&mut self, class: usize) {
        if let Some(rank) = self.classes[class].shown {
            self.agenda.todo.insert((rank, Item::Class(class)));
        }
    }

    /// Notes when the head will have waited long enough for room to be kept for it.
    pub(super) fn set_due(&mut self, class: usize) {
        let Some((rank, unit)) = self.classes[class].head() else { return };
        let has_hold = matches!(self.entries[unit].state, State::Waiting { hold: Some(_), .. });
        if has_hold || self.classes[class].due.is_some() {
            return;
        }
        let at = rank.since + self.settings.patience;
        self.classes[class].due = Some(at);
        self.due.insert((at, class));
    }

    /// Lets go of what is kept for a unit.
    pub(super) fn drop_hold(&mut self, unit: usize) {
        let rank = self.entries[unit].rank();
        let class = self.entries[unit].class;
        let State::Waiting { hold, .. } = &mut self.entries[unit].state else { return };
        let Some(hold) = hold.take() else { return };
        self.pools[hold.spot.pool].let_go(hold.spot.slot, &rank);
        if hold.is_promised {
            for seat in &self.classes[class].seats {
                self.pools[seat.pool].promised.remove(&rank);
            }
        }
        self.check_wanting(hold.spot.pool);
        self.touch(hold.spot);
    }

    /// What was kept for a unit is lost: it waits like others do.
    pub(super) fn back_in_line(&mut self, unit: usize) {
        self.drop_hold(unit);
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        self.classes[class].line.insert(rank, unit);
        self.refresh_class(class);
        self.set_due(class);
    }

    /// Keeps room for a unit on a node. A promised one needs no more than time: it leaves the line.
    pub(super) fn keep(&mut self, unit: usize, hold: Hold) {
        self.drop_hold(unit);
        let entry = &self.entries[unit];
        let (class, rank) = (entry.class, entry.rank());
        let pool = hold.spot.pool;
        let Some(want) = self.classes[class].want(pool).cloned() else { return };
        if let State::Waiting { hold: slot, .. } = &mut self.entries[unit].state {
            *slot = Some(hold);
        }
        self.pools[pool].hold(hold.spot.slot, node::Hold { rank, unit, want });
        if hold.is_promised {
            for seat in &self.classes[class].seats {
                self.pools[seat.pool].promised.insert(rank, unit);
            }
            self.leave_line(unit);
        } else {
            self.pools[pool].aged.insert(rank, unit);
        }
        self.touch(hold.spot);
    }

    /// Says that room is kept for a unit that waits, as it was decided before.
    pub fn reserve(&mut self, reservation: &Reservation) {
        // What was asked for may name kinds that became known later.
        self.settle();
        let Some(&unit) = self.index.get(&reservation.unit) else { return };
        let Some(site) = self.sites.get(&reservation.place.cluster) else { return };
        let Some(&slot) = site.nodes.get(&reservation.place.node) else { return };
        let here = Spot { pool: site.pool, slot };
        if matches!(self.entries[unit].state, State::Waiting { .. }) {
            self.keep(unit, Hold { spot: here, is_promised: reservation.is_promised });
            let class = self.entries[unit].class;
            if self.classes[class].head().is_some_and(|(_, head)| head == unit) {
                self.no_longer_due(class);
            }
        }
    }

    /// Moves the first who has waited long enough to where room is kept by rank; false if none has.
    pub(super) fn note_who_is_due(&mut self, now: Time, out: &mut Decisions) -> bool {
        let Some(&(at, class)) = self.due.first().filter(|(at, _)| *at <= now) else {
            return false;
        };
        out.steps += 1;
        self.due.remove(&(at, class));
        self.classes[class].due = None;
        let Some((rank, unit)) = self.classes[class].head() else { return true };
        let chosen = self.pool_for_keeping(class);
        // It may have wanted room in another pool before this one had a node for it.
        for seat in &self.classes[class].seats {
            self.pools[seat.pool].wanting.remove(&rank);
        }
        let better = self.classes[class].seats.iter().map(|seat| seat.pool);
        for pool in better.take_while(|pool| Some(*pool) != chosen) {
            self.pools[pool].overdue.insert(class);
        }
        let has_hold = matches!(self.entries[unit].state, State::Waiting { hold: Some(_), .. });
        if let Some(pool) = chosen.filter(|_| !has_hold) {
            self.pools[pool].wanting.insert(rank, class);
            self.check_wanting(pool);
        }
        true
    }

    fn no_longer_due(&mut self, class: usize) {
        if let Some(at) = self.classes[class].due.take() {
            self.due.remove(&(at, class));
        }
    }

    pub(super) fn check_wanting(&mut self, pool: usize) {
        if self.pools[pool].wanting.is_empty() {
            self.wanting.remove(&pool);
        } else {
            self.wanting.insert(pool);
        }
    }

    /// The first pool where the class would fit if a node were empty.
    pub(super) fn pool_for_keeping(&self, class: usize) -> Option<usize> {
        let mut seats = self.classes[class].seats.iter();
        seats.find(|seat| self.fits_empty(class, seat, true)).map(|seat| seat.pool)
    }

    /// Keeps room for those who have waited long, the best-ranked first, in as many steps as are
    /// left. True if it did.
    pub(super) fn keep_room(&mut self, steps: usize, out: &mut Decisions) -> bool {
        let pools: Vec<usize> = self.wanting.iter().copied().collect();
        let before = out.reservations.len();
        for pool in pools {
            let mut is_left = true;
            while is_left && out.steps < steps {
                out.steps += 1;
                is_left = self.keep_one(pool, out);
            }
            if !is_left {
                // Nobody else can get any before something is let go.
                self.wanting.remove(&pool);
            }
        }
        // By unit, as pools have no order of their own.
        out.reservations[before..].sort_by_key(|reservation| reservation.unit);
        out.reservations.len() > before
    }

    /// Keeps room for the first who wants it; at most on a few nodes, so that capacity is not
    /// hoarded. Who ranks higher takes the turn of who ranks lowest.
    fn keep_one(&mut self, pool: usize, out: &mut Decisions) -> bool {
        let inside = &self.pools[pool];
        let Some((&rank, &class)) = inside.wanting.first_key_value() else { return false };
        let limit = (inside.groups[0].order.len() * self.settings.kept_permille / 1000).max(1);
        let last = inside.aged.last_key_value().map(|(last, &unit)| (*last, unit));
        let yields = last.filter(|_| inside.aged.len() >= limit);
        if yields.is_some_and(|(last, _)| last <= rank) {
            return false;
        }
        let Some(slot) = self.nearest(class, pool, &rank) else {
            self.pools[pool].wanting.remove(&rank);
            self.set_due(class);
            return true;
        };
        if let Some((_, last)) = yields {
            self.drop_hold(last);
            self.set_due(self.entries[last].class);
        }
        self.pools[pool].wanting.remove(&rank);
        let Some((_, unit)) = self.classes[class].head() else { return true };
        let here = Spot { pool, slot };
        self.keep(unit, Hold { spot: here, is_promised: false });
        let place = self.place(here);
        out.reservations.push(Reservation { unit: rank.id, place, is_promised: false });
        true
    }

    /// The node that lacks the least for a class, among those where it would fit when empty. One
    /// where room is kept for nobody else is better, and of these only the first few are compared.
    fn nearest(&self, class: usize, pool: usize, rank: &Rank) -> Option<usize> {
        let inside = &self.pools[pool];
        let want = self.classes[class].want(pool)?;
        let mut left = COMPARED;
        let mut best = None;
        for (position, slot) in inside.groups[self.group(class, pool)?].order.iter() {
            let node = &inside.nodes[slot];
            if !node.is_open || !self.could_fit(class, Spot { pool, slot }, want) {
                continue;
            }
            let lack = inside.lack_permille(slot, want, rank);
            let score = (node.holds.len(), lack, position);
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

    pub(super) fn say(&mut self, unit: usize, wait: Wait, out: &mut Decisions) {
        let id = self.entries[unit].id;
        if let State::Waiting { said, .. } = &mut self.entries[unit].state
            && *said != Some(wait)
        {
            *said = Some(wait);
            out.waits.push(Waiting { unit: id, wait });
        }
    }
}
