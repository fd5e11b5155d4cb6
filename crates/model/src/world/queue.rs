//! The classes that wait for one pool's nodes, so that a release looks only at heads that fit.
//!
//! A tree over the classes keeps, for each subtree, the least that any head in it asks of each kind
//! and the best rank among them.

use std::ops::ControlFlow;

use super::unit::Rank;

/// Asked for by nobody: the neutral element of "least".
const NOBODY: i64 = i64::MAX;

/// The classes of one pool by seat; a seat is a leaf of the tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    width: usize,
    seats: usize,
    classes: Vec<usize>,
    vacant: Vec<usize>,
    best: Vec<Option<Rank>>,
    least: Vec<i64>,
}

/// What a search in the queue asks: could anybody who asks for at least this, and ranks no better
/// than that, be served? And for one class: could its head?
pub(super) trait Probe {
    /// May a subtree hold somebody to serve?
    fn may(&self, best: &Rank, least: &[i64]) -> bool;
    /// Can this class's head be served?
    fn can(&self, class: usize, head: &Rank) -> bool;
}

impl Queue {
    /// Gives a class a seat; it waits only once it has a head.
    pub(super) fn sit(&mut self, class: usize) -> usize {
        if let Some(seat) = self.vacant.pop() {
            self.classes[seat] = class;
            return seat;
        }
        self.classes.push(class);
        if self.classes.len() > self.seats {
            self.grow((self.seats * 2).max(4), self.width);
        }
        self.classes.len() - 1
    }

    /// Takes the seat back.
    pub(super) fn leave(&mut self, seat: usize) {
        self.set(seat, &[], None);
        self.vacant.push(seat);
    }

    /// Makes room for more kinds.
    pub(super) fn widen(&mut self, width: usize) {
        if width > self.width {
            self.grow(self.seats, width);
        }
    }

    fn grow(&mut self, seats: usize, width: usize) {
        let old = std::mem::take(self);
        self.best = vec![None; 2 * seats];
        self.least = vec![NOBODY; 2 * seats * width];
        (self.seats, self.width) = (seats, width);
        (self.classes, self.vacant) = (old.classes, old.vacant);
        for seat in 0..old.seats {
            let (from, to) = (old.seats + seat, seats + seat);
            self.best[to] = old.best[from];
            let row = &old.least[from * old.width..(from + 1) * old.width];
            self.least[to * width..to * width + old.width].copy_from_slice(row);
            if old.best[from].is_some() {
                self.least[to * width + old.width..(to + 1) * width].fill(0);
            }
        }
        (1..seats).rev().for_each(|i| self.pull(i));
    }

    /// Says what a class asks for and who is first in it.
    pub(super) fn set(&mut self, seat: usize, want: &[(usize, i64)], head: Option<Rank>) {
        let mut i = self.seats + seat;
        let row = &mut self.least[i * self.width..(i + 1) * self.width];
        row.fill(if head.is_some() { 0 } else { NOBODY });
        if head.is_some() {
            for &(column, amount) in want {
                row[column] = amount;
            }
        }
        self.best[i] = head;
        while i > 1 {
            i /= 2;
            self.pull(i);
        }
    }

    fn pull(&mut self, i: usize) {
        let (left, right) = (self.best[2 * i], self.best[2 * i + 1]);
        self.best[i] = left.into_iter().chain(right).min();
        for k in 0..self.width {
            let least = |child: usize| self.least[child * self.width + k];
            self.least[i * self.width + k] = least(2 * i).min(least(2 * i + 1));
        }
    }

    /// The best-ranked class after `after` whose head the probe can serve.
    pub(super) fn next(&self, after: Option<&Rank>, probe: &dyn Probe) -> Option<(Rank, usize)> {
        let mut found = None;
        if self.seats > 0 {
            self.descend(1, after, probe, &mut found);
        }
        found
    }

    fn descend(
        &self,
        i: usize,
        after: Option<&Rank>,
        probe: &dyn Probe,
        found: &mut Option<(Rank, usize)>,
    ) {
        let Some(best) = &self.best[i] else { return };
        if found.as_ref().is_some_and(|(rank, _)| rank <= best) {
            return;
        }
        if !probe.may(best, &self.least[i * self.width..(i + 1) * self.width]) {
            return;
        }
        if i >= self.seats {
            let class = self.classes[i - self.seats];
            if after.is_none_or(|after| after < best) && probe.can(class, best) {
                *found = Some((*best, class));
            }
            return;
        }
        let right_first = self.best[2 * i + 1].is_some() && self.best[2 * i + 1] < self.best[2 * i];
        let (first, second) =
            if right_first || self.best[2 * i].is_none() { (1, 0) } else { (0, 1) };
        self.descend(2 * i + first, after, probe, found);
        self.descend(2 * i + second, after, probe, found);
    }

    /// Visits classes whose heads rank before `rank`, until `visit` has had enough.
    pub(super) fn each_before(&self, rank: &Rank, visit: &mut dyn FnMut(usize) -> ControlFlow<()>) {
        if self.seats > 0 {
            let _ = self.descend_before(1, rank, visit);
        }
    }

    fn descend_before(
        &self,
        i: usize,
        rank: &Rank,
        visit: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.best[i].is_none_or(|best| best >= *rank) {
            return ControlFlow::Continue(());
        }
        if i >= self.seats {
            return visit(self.classes[i - self.seats]);
        }
        self.descend_before(2 * i, rank, visit)?;
        self.descend_before(2 * i + 1, rank, visit)
    }
}
