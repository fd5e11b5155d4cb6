//! The order in which nodes are tried, kept in an array with gaps, so that one node can come, go
//! or change without the others being moved: a tree over positions stays as it is.
//!
//! When a gap is used up, the nodes around it are spread anew, over the smallest stretch that is
//! empty enough; the longer the stretch, the emptier it must be, which makes long ones rare.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::ClusterId;

/// Where a node belongs. Fields are compared top to bottom and the lowest is tried first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sort {
    /// How rare the rarest kind is that it has: what is scarce is tried last.
    pub(super) rarity: usize,
    /// How large it is, as the sum of the logarithms of what it has: small ones first.
    pub(super) size: u64,
    /// Last resort, and what makes two runs agree.
    pub(super) cluster: ClusterId,
    /// The same.
    pub(super) name: Arc<str>,
}

/// A position without a node, and the position of a node that has none.
pub(super) const NOWHERE: usize = usize::MAX;

/// Nodes in order, with gaps.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    cells: Vec<usize>,
    /// Slot and position.
    at: BTreeMap<Sort, (usize, usize)>,
}

impl Order {
    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// How many positions there are.
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

    /// Nodes near to where one belongs: those just before and after.
    pub(super) fn near(&self, sort: &Sort, count: usize) -> impl Iterator<Item = usize> {
        let before = self.at.range(..sort).rev().take(count);
        let after = self.at.range(sort..).take(count);
        before.chain(after).map(|(_, (slot, _))| *slot)
    }

    /// Adds a node that gets its position at the next [`Order::spread`].
    pub(super) fn add(&mut self, sort: Sort, slot: usize) {
        self.at.insert(sort, (slot, NOWHERE));
    }

    /// Spreads all nodes evenly, with as many gaps as nodes at least.
    pub(super) fn spread(&mut self) {
        let count = self.at.len();
        let positions = if count > 1 { (2 * count).next_power_of_two() } else { count };
        self.cells = vec![NOWHERE; positions];
        for (i, (slot, position)) in self.at.values_mut().enumerate() {
            *position = i * positions / count;
            self.cells[*position] = *slot;
        }
    }

    /// Takes a node out; tells where it was.
    pub(super) fn remove(&mut self, sort: &Sort) -> Option<usize> {
        let (_, position) = self.at.remove(sort)?;
        if let Some(cell) = self.cells.get_mut(position) {
            *cell = NOWHERE;
        }
        Some(position)
    }

    /// Puts a node where it belongs. Tells which positions may have changed; none if there are too
    /// few, and all must be [spread](Order::spread) anew.
    pub(super) fn insert(&mut self, sort: &Sort, slot: usize) -> Option<Range<usize>> {
        let before = self.at.range(..sort).next_back().map(|(_, (_, position))| *position);
        let after = self.at.range(sort..).next().map(|(_, (_, position))| *position);
        let has_gaps = self.at.len() > 1;
        self.add(sort.clone(), slot);
        let free = before.map_or(0, |p| p + 1)..after.unwrap_or(self.cells.len());
        let near = before.or(after).filter(|_| has_gaps)?;
        if !free.is_empty() {
            let position = usize::midpoint(free.start, free.end - 1);
            self.seat(sort, position);
            return Some(position..position + 1);
        }
        let stretch = self.stretch(near)?;
        self.spread_in(&stretch, sort);
        Some(stretch)
    }

    fn seat(&mut self, sort: &Sort, position: usize) {
        if let Some((slot, at)) = self.at.get_mut(sort) {
            *at = position;
            self.cells[position] = *slot;
        }
    }

    /// The shortest stretch around a position that is empty enough for one more.
    fn stretch(&self, near: usize) -> Option<Range<usize>> {
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

    /// Spreads those in a stretch, and one more, evenly.
    fn spread_in(&mut self, stretch: &Range<usize>, new: &Sort) {
        let is_inside = |entry: &(&Sort, &(usize, usize))| stretch.contains(&entry.1.1);
        let before = self.at.range(..new).rev().take_while(is_inside);
        let mut sorts: Vec<Sort> = before.map(|(sort, _)| sort.clone()).collect();
        sorts.reverse();
        sorts.push(new.clone());
        let after = self.at.range(new..).skip(1).take_while(is_inside);
        sorts.extend(after.map(|(sort, _)| sort.clone()));
        self.cells[stretch.clone()].fill(NOWHERE);
        for (i, sort) in sorts.iter().enumerate() {
            self.seat(sort, stretch.start + i * stretch.len() / sorts.len());
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
        fn nodes_come_and_go_and_stay_in_order(
            first in prop::collection::btree_set(0u32..64, 0..20),
            changes in prop::collection::vec(0u32..64, 0..200),
        ) {
            let mut order = Order::default();
            let mut there = first.clone();
            for &n in &first {
                order.add(sort(n), n as usize);
            }
            order.spread();
            for n in changes {
                let cells = order.cells.clone();
                let moved = if there.remove(&n) {
                    let position = order.remove(&sort(n)).expect("it was there");
                    Some(position..position + 1)
                } else {
                    there.insert(n);
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
                prop_assert_eq!(&slots, &there.iter().copied().collect::<Vec<_>>());
                prop_assert!(order.at.values().all(|(slot, p)| order.cells[*p] == *slot));
            }
        }
    }
}
