//! One round of deciding: those whose turn it may be, best-ranked first, until nothing is left.
//!
//! Between rounds this holds: no head of a line fits anywhere, not even by preemption, unless its
//! class is on the agenda or the node is touched. Every change of a fact touches what it may have
//! made possible; so what a round looks at is all that can have changed.

use std::collections::{BTreeSet, HashMap};

use super::decision::{Backfill, Decisions, Preemption, Reservation, Start, Wait, Why};
use super::pool::Was;
use super::preempt::Victims;
use super::queue::Probe;
use super::unit::{Rank, Spot};
use super::{Hold, State, World};
use crate::Time;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// Somebody whose room is being made.
    Promised(usize),
    /// The head of a class.
    Class(usize),
    /// The head of a class that a touched node could serve.
    Node(Spot, usize),
}

/// What is to be looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Agenda {
    pub(super) todo: BTreeSet<(Rank, Item)>,
    touched: HashMap<Spot, Touched>,
    unlooked: Vec<Spot>,
}

/// A node with more room than before.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    /// All up to here were served or can't be.
    after: Option<Rank>,
    /// Who is next, and is on the agenda.
    next: Option<(Rank, usize)>,
}

impl Agenda {
    /// Has the node looked at from the beginning.
    fn touch(&mut self, spot: Spot) {
        self.forget(spot);
        self.touched.insert(spot, Touched::default());
        self.unlooked.push(spot);
    }

    pub(super) fn forget(&mut self, spot: Spot) {
        if let Some(Touched { next: Some((rank, class)), .. }) = self.touched.remove(&spot) {
            self.todo.remove(&(rank, Item::Node(spot, class)));
        }
    }
}

impl World {
    /// Decides what to do now, in at most about `steps` steps.
    ///
    /// What is decided counts as done: deciding again gives nothing, unless the bound was reached.
    /// The caller makes it durable, and says what became of it ([`World::placed`],
    /// [`World::stopping`], [`World::requeue`], [`World::gone`]).
    pub fn decide(&mut self, now: Time, steps: usize) -> Decisions {
        self.settle();
        let mut out = Decisions::default();
        while out.steps < steps.max(1) {
            if self.step(now, &mut out) || self.note_who_is_due(now, &mut out) {
                continue;
            }
            if !self.keep_room(steps.max(1), &mut out) && self.agenda.unlooked.is_empty() {
                out.is_complete = self.wanting.is_empty();
                break;
            }
        }
        self.report_news(&mut out);
        out
    }

    /// Brings the indexes of all pools up to date whose nodes have changed.
    pub(super) fn settle(&mut self) {
        for pool in std::mem::take(&mut self.stale) {
            self.pools[pool].settle();
            for class in std::mem::take(&mut self.pools[pool].puzzled) {
                self.unseat(class);
                self.seat(class);
            }
            self.restructured(pool);
        }
    }

    /// What nodes a pool has, or what they have, has changed: room may be kept where it could not.
    pub(super) fn restructured(&mut self, pool: usize) {
        self.structure += 1;
        for class in std::mem::take(&mut self.pools[pool].overdue) {
            self.set_due(class);
        }
        self.check_wanting(pool);
    }

    /// If a node is not what it was, those may want room elsewhere who wanted it in its pool.
    pub(super) fn check_loss(&mut self, spot: Spot, was: &Was) {
        let pool = &self.pools[spot.pool];
        if pool.wanting.is_empty() || !pool.is_worse(spot.slot, was) {
            return;
        }
        let has_another = pool.has_another(spot.slot, was);
        let cluster = pool.nodes[spot.slot].cluster;
        let concerned: Vec<usize> = if has_another {
            self.pinned.get(&cluster).into_iter().flatten().copied().collect()
        } else {
            pool.wanting.values().copied().collect()
        };
        for class in concerned {
            self.check_pool(class, spot.pool);
        }
    }

    /// A class that wants room in a pool where no node would do any more looks for another.
    fn check_pool(&mut self, class: usize, pool: usize) {
        let Some(rank) = self.classes[class].shown else { return };
        if self.pools[pool].wanting.contains_key(&rank)
            && self.pool_for_keeping(class) != Some(pool)
        {
            self.pools[pool].wanting.remove(&rank);
            self.check_wanting(pool);
            self.set_due(class);
        }
    }

    /// One step; false when there is none.
    fn step(&mut self, now: Time, out: &mut Decisions) -> bool {
        if let Some(spot) = self.agenda.unlooked.pop() {
            out.steps += 1;
            self.look(spot);
            return true;
        }
        let Some((rank, item)) = self.agenda.todo.pop_first() else { return false };
        out.steps += 1;
        match item {
            Item::Promised(unit) => self.redeem(unit, now, out),
            Item::Class(class) => self.attempt(class, now, out),
            Item::Node(spot, class) => self.serve(spot, class, rank, now, out),
        }
        true
    }

    /// A node has more room than before, or may have.
    pub(super) fn touch(&mut self, spot: Spot) {
        self.agenda.touch(spot);
        self.recheck_promises(spot);
    }

    /// Has those looked at whose room is being made on a node.
    pub(super) fn recheck_promises(&mut self, spot: Spot) {
        for hold in &self.pools[spot.pool].nodes[spot.slot].holds {
            self.agenda.todo.insert((hold.rank, Item::Promised(hold.unit)));
        }
    }

    /// Finds who is next for a touched node.
    fn look(&mut self, spot: Spot) {
        let Some(touched) = self.agenda.touched.get(&spot).copied() else { return };
        if touched.next.is_some() {
            return;
        }
        let probe = CanUse { world: self, spot };
        match self.pools[spot.pool].queue.next(touched.after.as_ref(), &probe) {
            None => drop(self.agenda.touched.remove(&spot)),
            Some((rank, class)) => {
                self.agenda.todo.insert((rank, Item::Node(spot, class)));
                let next = Some((rank, class));
                self.agenda.touched.insert(spot, Touched { next, ..touched });
            }
        }
    }

    fn serve(&mut self, spot: Spot, class: usize, rank: Rank, now: Time, out: &mut Decisions) {
        self.agenda.touched.insert(spot, Touched { after: Some(rank), next: None });
        self.agenda.unlooked.push(spot);
        if self.classes[class].shown == Some(rank) {
            self.attempt(class, now, out);
        }
    }

    /// Somebody whose room was being made starts, waits on, or has lost it.
    fn redeem(&mut self, unit: usize, now: Time, out: &mut Decisions) {
        let entry = &self.entries[unit];
        let State::Waiting { hold: Some(Hold { spot, is_promised: true }), .. } = entry.state
        else {
            return;
        };
        let (class, rank) = (entry.class, entry.rank());
        let pool = &self.pools[spot.pool];
        let Some(want) = self.classes[class].want(spot.pool) else { return };
        let is_apart = self.is_apart(class, spot);
        if is_apart && pool.fits_now(spot.slot, want, &rank) {
            self.start(unit, spot, now, out);
        } else if !is_apart || !pool.fits_soon(spot.slot, want, &rank) {
            self.back_in_line(unit);
        }
    }

    /// Does the best for the head of a class.
    fn attempt(&mut self, class: usize, now: Time, out: &mut Decisions) {
        let Some((rank, unit)) = self.classes[class].head() else { return };
        self.set_over_budget(class, false);
        if let Some(spot) = self.seek_start(class, unit, &rank) {
            return self.start(unit, spot, now, out);
        }
        if let Some(spot) = self.seek_coming(class, unit, &rank) {
            return self.promise(unit, spot, out);
        }
        match self.seek_victims(class, &rank, now) {
            Ok(victims) => self.preempt(unit, &victims, out),
            Err(wait) => {
                self.set_over_budget(class, wait == Wait::Budget);
                self.say(unit, wait, out);
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
        self.leave_line(unit);
        let rank = self.entries[unit].rank();
        let backfill = self.overtaken(&rank, spot);
        out.starts.push(Start { unit: rank.id, place: self.place(spot), backfill });
        self.occupy(unit, spot, now);
    }

    fn promise(&mut self, unit: usize, spot: Spot, out: &mut Decisions) {
        self.keep(unit, Hold { spot, is_promised: true });
        let (id, place) = (self.entries[unit].id, self.place(spot));
        out.reservations.push(Reservation { unit: id, place, is_promised: true });
        self.say(unit, Wait::Yielding, out);
    }

    fn preempt(&mut self, unit: usize, victims: &Victims, out: &mut Decisions) {
        let by = self.entries[unit].id;
        let place = self.place(victims.spot);
        for &victim in &victims.units {
            let id = self.entries[victim].id;
            out.preemptions.push(Preemption { victim: id, by, place: place.clone() });
            self.stop(victim, Some(by));
        }
        let organization = self.classes[self.entries[unit].class].key.organization;
        if let Some(budget) = self.budgets.get_mut(&organization) {
            let count = u32::try_from(victims.units.len()).unwrap_or(u32::MAX);
            budget.used = budget.used.saturating_add(count);
        }
        self.promise(unit, victims.spot, out);
    }

    /// The first who waits, could use the node if it were empty, and ranks before `rank`.
    fn overtaken(&self, rank: &Rank, spot: Spot) -> Option<Backfill> {
        let pool = &self.pools[spot.pool];
        let waiting = pool.queue.next(None, &Before { world: self, spot, rank });
        let mut promised = pool.promised.range(..rank);
        let promised = promised.find(|(_, unit)| self.covets(self.entries[**unit].class, spot));
        let waiting = waiting.map(|(first, _)| (first, Why::DoesNotFit));
        let promised = promised.map(|(first, _)| (*first, Why::Promised));
        let (first, why) = waiting.into_iter().chain(promised).min_by_key(|(first, _)| *first)?;
        Some(Backfill { ahead: first.id, why })
    }

    /// Those who came and are not first in their line wait behind those who are.
    fn report_news(&mut self, out: &mut Decisions) {
        for id in std::mem::take(&mut self.news) {
            let Some(&unit) = self.index.get(&id) else { continue };
            let entry = &self.entries[unit];
            let is_head = self.classes[entry.class].shown == Some(entry.rank());
            match entry.state {
                State::Waiting { hold: Some(Hold { is_promised: true, .. }), .. } => {
                    self.say(unit, Wait::Yielding, out);
                }
                // The bound was reached before its turn came.
                State::Waiting { said: None, .. } if is_head => drop(self.news.insert(id)),
                State::Waiting { said: None, .. } => self.say(unit, Wait::Behind, out),
                _ => {}
            }
        }
    }
}

/// Who could be served by a node, if need be by preemption?
struct CanUse<'a> {
    world: &'a World,
    spot: Spot,
}

impl Probe for CanUse<'_> {
    fn may(&self, best: &Rank, least: &[i64]) -> bool {
        let pool = &self.world.pools[self.spot.pool];
        let short =
            |(k, &least): (usize, &i64)| least > 0 && least > pool.reach(self.spot.slot, k, best);
        pool.nodes[self.spot.slot].is_open && !least.iter().enumerate().any(short)
    }

    fn can(&self, class: usize, head: &Rank) -> bool {
        let pool = &self.world.pools[self.spot.pool];
        let Some(want) = self.world.classes[class].want(self.spot.pool) else { return false };
        let slot = self.spot.slot;
        let fits = if self.world.may_preempt(class) {
            pool.fits_after(slot, want, head)
        } else {
            pool.fits_soon(slot, want, head)
        };
        fits && self.world.may_use(class, self.spot)
    }
}

/// Who that could use a node, were it empty, ranks before somebody?
struct Before<'a> {
    world: &'a World,
    spot: Spot,
    rank: &'a Rank,
}

impl Probe for Before<'_> {
    fn may(&self, best: &Rank, _: &[i64]) -> bool {
        best < self.rank
    }

    fn can(&self, class: usize, _: &Rank) -> bool {
        self.world.covets(class, self.spot)
    }
}
