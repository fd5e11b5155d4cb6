//! The order in which nodes are tried, stored in an array with gaps (a packed-memory array), so
//! that adding, removing or changing one node leaves the positions of the others unchanged.
//!
//! When a gap is used up, the nodes around it are redistributed over the smallest window that has
//! enough gaps; larger windows need a larger share of gaps, which makes them rare.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::ClusterId;

/// Sort key of a node. Fields are compared top to bottom and the lowest is tried first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sort {
    /// Rarity of its rarest resource kind: nodes with scarce kinds are tried last.
    pub(super) rarity: usize,
    /// Size as the sum of the logarithms of its capacity: small nodes first.
    pub(super) size: u64,
    /// Tie-breaker that makes runs deterministic.
    pub(super) cluster: ClusterId,
    /// Tie-breaker within the cluster.
    pub(super) name: Arc<str>,
}

/// Marks a position without a node and a node without a position.
pub(super) const NOWHERE: usize = usize::MAX;

/// Nodes in order, with gaps.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    cells: Vec<usize>,
    /// Slot and position by sort key.
    at: BTreeMap<Sort, (usize, usize)>,
}

impl Order {
    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// Number of positions, including gaps.
    pub(super) fn positions(&self) -> usize {
        self.cells.len()
    }

    /// The node at a position.
    pub(super) fn get(&self, position: usize) -> Option<usize> {
        self.cells.get(position).copied().filter(|slot| *slot != NOWHERE)
    }

    /// Positions and nodes, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.cells.iter().copied().enumerate();
        all.filter(|(_, slot)| *slot != NOWHERE)
    }

    /// The node, if it is the only one.
    pub(super) fn only(&self) -> Option<usize> {
        let (_, (slot, _)) = self.at.first_key_value().filter(|_| self.at.len() == 1)?;
        Some(*slot)
    }

    /// The `count` nodes before a sort key and the `count` from it on.
    pub(super) fn near(&self, sort: &Sort, count: usize) -> impl Iterator<Item = usize> {
        let before = self.at.range(..sort).rev().take(count);
        let after = self.at.range(sort..).take(count);
        before.chain(after).map(|(_, (slot, _))| *slot)
    }

    /// Adds a node, which gets its position at the next [`Order::spread`].
    pub(super) fn add(&mut self, sort: Sort, slot: usize) {
        self.at.insert(sort, (slot, NOWHERE));
    }

    /// Distributes all nodes evenly, with at least as many gaps as nodes.
    pub(super) fn spread(&mut self) {
        let count = self.at.len();
        let positions = if count > 1 { (2 * count).next_power_of_two() } else { count };
        self.cells = vec![NOWHERE; positions];
        for (i, (slot, position)) in self.at.values_mut().enumerate() {
            *position = i * positions / count;
            self.cells[*position] = *slot;
        }
    }

    /// Removes a node and returns its position.
    pub(super) fn remove(&mut self, sort: &Sort) -> Option<usize> {
        let (_, position) = self.at.remove(sort)?;
        if let Some(cell) = self.cells.get_mut(position) {
            *cell = NOWHERE;
        }
        Some(position)
    }

    /// Inserts a node and returns the positions that may have changed; none if present are too few
    /// gaps and all nodes must be [redistributed](Order::spread).
    pub(super) fn insert(&mut self, sort: &Sort, slot: usize) -> Option<Range<usize>> {
        let before = self.at.range(..sort).next_back().map(|(_, (_, position))| *position);
        let after = self.at.range(sort..).next().map(|(_, (_, position))| *position);
        let has_gaps = self.at.len() > 1;
        self.add(sort.clone(), slot);
        let free = before.map_or(0, |p| p + 1)..after.unwrap_or(self.cells.len());
        let near = before.or(after).filter(|_| has_gaps)?;
        if !free.is_empty() {
            let position = usize::midpoint(free.start, free.end - 1);
            self.put(sort, position);
            return Some(position..position + 1);
        }
        let window = self.window(near)?;
        self.spread_window(&window, sort);
        Some(window)
    }

    fn put(&mut self, sort: &Sort, position: usize) {
        if let Some((slot, at)) = self.at.get_mut(sort) {
            *at = position;
            self.cells[position] = *slot;
        }
    }

    /// The smallest window around a position with enough gaps for one more node.
    fn window(&self, near: usize) -> Option<Range<usize>> {
        let levels = self.cells.len().ilog2() as usize;
        (1..=levels).find_map(|level| {
            let length = 1 << level;
            let start = near / length * length;
            let used = self.cells[start..start + length].iter().filter(|s| **s != NOWHERE).count();
            // From full at the bottom to three quarters at the top.
            let most = length - length * level / (4 * levels);
            (used < most).then_some(start..start + length)
        })
    }

    /// Distributes the nodes of a window and a new one evenly.
    fn spread_window(&mut self, window: &Range<usize>, new: &Sort) {
        let is_inside = |entry: &(&Sort, &(usize, usize))| window.contains(&entry.1.1);
        let before = self.at.range(..new).rev().take_while(is_inside);
        let mut sorts: Vec<Sort> = before.map(|(sort, _)| sort.clone()).collect();
        sorts.reverse();
        sorts.push(new.clone());
        let after = self.at.range(new..).skip(1).take_while(is_inside);
        sorts.extend(after.map(|(sort, _)| sort.clone()));
        self.cells[window.clone()].fill(NOWHERE);
        for (i, sort) in sorts.iter().enumerate() {
            self.put(sort, window.start + i * window.len() / sorts.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Xid;

    fn sort(n: u32) -> Sort {
        let cluster = ClusterId(Xid::new(0, [0; 5], n));
        Sort { rarity: 0, size: 0, cluster, name: "main".into() }
    }

    proptest! {
        #[test]
        fn inserts_and_removals_preserve_the_order(
            first in prop::collection::btree_set(0u32..64, 0..20),
            changes in prop::collection::vec(0u32..64, 0..200),
        ) {
            let mut order = Order::default();
            let mut present = first.clone();
            for &n in &first {
                order.add(sort(n), n as usize);
            }
            order.spread();
            for n in changes {
                let cells = order.cells.clone();
                let moved = if present.remove(&n) {
                    let position = order.remove(&sort(n)).expect("is present");
                    Some(position..position + 1)
                } else {
                    present.insert(n);
                    order.insert(&sort(n), n as usize)
                };
                if let Some(moved) = moved {
                    let differs = |i: &usize| order.cells[*i] != cells[*i];
                    let differing: Vec<usize> = (0..cells.len()).filter(differs).collect();
                    prop_assert!(differing.iter().all(|i| moved.contains(i)));
                } else {
                    order.spread();
                }
                let slots: Vec<u32> = order.iter().map(|(_, s)| u32::try_from(s).unwrap()).collect();
                prop_assert_eq!(&slots, &present.iter().copied().collect::<Vec<_>>());
                prop_assert!(order.at.values().all(|(slot, p)| order.cells[*p] == *slot));
            }
        }
    }
}
