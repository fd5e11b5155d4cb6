//! A segment tree over the order of nodes that finds those with enough of every kind.
//!
//! Each inner node stores the largest amount of each kind below it, so subtrees in which one kind
//! is short everywhere are skipped.

use std::ops::ControlFlow;

use super::vector::fits;

/// The tree; leaf `i` is the node at position `i` of the order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tree {
    leaves: usize,
    width: usize,
    cells: Vec<i64>,
}

/// Less than any request: the node accepts no units.
pub(super) const CLOSED: i64 = i64::MIN / 4;

impl Tree {
    /// A tree of `count` closed nodes.
    pub(super) fn new(count: usize, width: usize) -> Self {
        let leaves = if count == 0 { 0 } else { count.next_power_of_two() };
        Self { leaves, width, cells: vec![CLOSED; 2 * leaves * width] }
    }

    /// Has it no leaves?
    pub(super) fn is_empty(&self) -> bool {
        self.leaves == 0
    }

    fn row(&self, i: usize) -> &[i64] {
        &self.cells[i * self.width..(i + 1) * self.width]
    }

    #[cfg(test)]
    pub(super) fn leaf(&self, position: usize) -> &[i64] {
        self.row(self.leaves + position)
    }

    /// Writes a leaf without updating its ancestors; follow with [`Tree::build`].
    pub(super) fn put(&mut self, position: usize, row: &[i64]) {
        let at = (self.leaves + position) * self.width;
        self.cells[at..at + self.width].copy_from_slice(row);
    }

    /// Recomputes all inner nodes.
    pub(super) fn build(&mut self) {
        for i in (1..self.leaves).rev() {
            self.pull(i);
        }
    }

    /// Writes a leaf and updates its ancestors.
    pub(super) fn set(&mut self, position: usize, row: &[i64]) {
        self.put(position, row);
        let mut i = usize::midpoint(self.leaves, position);
        while i > 0 && self.pull(i) {
            i /= 2;
        }
    }

    /// Recomputes one inner node and returns whether it changed.
    fn pull(&mut self, i: usize) -> bool {
        let (at, width) = (i * self.width, self.width);
        let mut changed = false;
        for k in 0..width {
            let most = self.cells[2 * at + k].max(self.cells[2 * at + width + k]);
            changed |= self.cells[at + k] != most;
            self.cells[at + k] = most;
        }
        changed
    }

    /// Visits the positions where `demand` fits, in order, until `visit` breaks.
    pub(super) fn each_fit(
        &self,
        demand: &[(usize, i64)],
        visit: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) {
        if self.leaves > 0 {
            let _ = self.descend(1, demand, visit);
        }
    }

    fn descend(
        &self,
        i: usize,
        demand: &[(usize, i64)],
        visit: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !fits(demand, self.row(i)) {
            return ControlFlow::Continue(());
        }
        if i >= self.leaves {
            return visit(i - self.leaves);
        }
        self.descend(2 * i, demand, visit)?;
        self.descend(2 * i + 1, demand, visit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tree_finds_the_same_positions_as_a_scan(
            rows in prop::collection::vec((0i64..5, 0i64..5), 1..40),
            changes in prop::collection::vec((0usize..40, 0i64..5, 0i64..5), 0..20),
            demand in (0i64..5, 0i64..5),
        ) {
            let mut rows: Vec<[i64; 2]> = rows.into_iter().map(|(a, b)| [a, b]).collect();
            let mut tree = Tree::new(rows.len(), 2);
            rows.iter().enumerate().for_each(|(i, row)| tree.put(i, row));
            tree.build();
            for (i, a, b) in changes {
                let i = i % rows.len();
                rows[i] = [a, b];
                tree.set(i, &rows[i]);
            }
            let demand = [(0, demand.0), (1, demand.1)];
            let mut found = Vec::new();
            tree.each_fit(&demand, &mut |i| { found.push(i); ControlFlow::Continue(()) });
            let scan: Vec<usize> = (0..rows.len()).filter(|&i| fits(&demand, &rows[i])).collect();
            prop_assert_eq!(found, scan);
        }
    }
}
