//! The queue of one pool: classes with pending units, indexed so that freed capacity is offered
//! only to heads that fit.
//!
//! A segment tree over the classes stores for each subtree the smallest request of each kind and
//! the best rank.

use std::ops::ControlFlow;

use super::unit::Rank;

/// The neutral element of the minimum.
const NOBODY: i64 = i64::MAX;

/// The classes of one pool; each is a leaf of the tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    width: usize,
    leaves: usize,
    classes: Vec<usize>,
    vacant: Vec<usize>,
    best: Vec<Option<Rank>>,
    least: Vec<i64>,
}

/// The predicate of a queue search.
pub(super) trait Probe {
    /// May a subtree with this best rank and these smallest requests contain a match?
    fn may_match(&self, best: &Rank, least: &[i64]) -> bool;
    /// Does the head of this class match?
    fn matches(&self, class: usize, head: &Rank) -> bool;
}

impl Queue {
    /// Adds a class, without a head yet.
    pub(super) fn insert(&mut self, class: usize) -> usize {
        if let Some(leaf) = self.vacant.pop() {
            self.classes[leaf] = class;
            return leaf;
        }
        self.classes.push(class);
        if self.classes.len() > self.leaves {
            self.grow((self.leaves * 2).max(4), self.width);
        }
        self.classes.len() - 1
    }

    /// Removes a class.
    pub(super) fn remove(&mut self, leaf: usize) {
        self.set(leaf, &[], None);
        self.vacant.push(leaf);
    }

    /// Adds columns for more kinds.
    pub(super) fn widen(&mut self, width: usize) {
        if width > self.width {
            self.grow(self.leaves, width);
        }
    }

    fn grow(&mut self, leaves: usize, width: usize) {
        let old = std::mem::take(self);
        self.best = vec![None; 2 * leaves];
        self.least = vec![NOBODY; 2 * leaves * width];
        (self.leaves, self.width) = (leaves, width);
        (self.classes, self.vacant) = (old.classes, old.vacant);
        for leaf in 0..old.leaves {
            let (from, to) = (old.leaves + leaf, leaves + leaf);
            self.best[to] = old.best[from];
            let row = &old.least[from * old.width..(from + 1) * old.width];
            self.least[to * width..to * width + old.width].copy_from_slice(row);
            if old.best[from].is_some() {
                self.least[to * width + old.width..(to + 1) * width].fill(0);
            }
        }
        (1..leaves).rev().for_each(|i| self.pull(i));
    }

    /// Sets the request and the head of a class.
    pub(super) fn set(&mut self, leaf: usize, demand: &[(usize, i64)], head: Option<Rank>) {
        let mut i = self.leaves + leaf;
        let row = &mut self.least[i * self.width..(i + 1) * self.width];
        row.fill(if head.is_some() { 0 } else { NOBODY });
        if head.is_some() {
            for &(column, amount) in demand {
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

    /// The best-ranked class after `after` whose head matches.
    pub(super) fn next(&self, after: Option<&Rank>, probe: &dyn Probe) -> Option<(Rank, usize)> {
        let mut found = None;
        if self.leaves > 0 {
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
        if !probe.may_match(best, &self.least[i * self.width..(i + 1) * self.width]) {
            return;
        }
        if i >= self.leaves {
            let class = self.classes[i - self.leaves];
            if after.is_none_or(|after| after < best) && probe.matches(class, best) {
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

    /// Visits classes whose heads rank before `rank`, until `visit` breaks.
    pub(super) fn each_before(&self, rank: &Rank, visit: &mut dyn FnMut(usize) -> ControlFlow<()>) {
        if self.leaves > 0 {
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
        if i >= self.leaves {
            return visit(self.classes[i - self.leaves]);
        }
        self.descend_before(2 * i, rank, visit)?;
        self.descend_before(2 * i + 1, rank, visit)
    }
}
