//! Maintains the orders of a pool's nodes and the indexes over their positions.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Group, Pool};
use crate::world::order::{NOWHERE, Sort};
use crate::world::tree::Tree;

impl Pool {
    /// Rebuilds orders and indexes if kinds or their rarity have changed.
    pub(in crate::world) fn rebuild(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        self.rarities = self.rarities();
        for group in &mut self.groups {
            *group = Group::default();
        }
        let vacant: BTreeSet<usize> = self.vacant.iter().copied().collect();
        for slot in (0..self.nodes.len()).filter(|slot| !vacant.contains(slot)) {
            let sort = self.sort(slot);
            for group in [0, self.nodes[slot].group] {
                self.groups[group].order.add(sort.clone(), slot);
            }
            self.nodes[slot].sort = Some(sort);
        }
        for group in 0..self.groups.len() {
            self.build_indexes(group);
        }
    }

    /// Moves a new or changed node to its position.
    pub(in crate::world) fn arrange(&mut self, slot: usize) {
        self.is_stale |= self.rarities() != self.rarities;
        if self.is_stale {
            return;
        }
        let sort = self.sort(slot);
        if self.nodes[slot].sort.as_ref() == Some(&sort) {
            return;
        }
        self.withdraw(slot);
        for (i, group) in [0, self.nodes[slot].group].into_iter().enumerate() {
            match self.groups[group].order.insert(&sort, slot) {
                Some(moved) => self.reindex(i, group, moved),
                None => self.build_indexes(group),
            }
        }
        self.nodes[slot].sort = Some(sort);
    }

    /// Removes a node from all orders and indexes.
    pub(super) fn withdraw(&mut self, slot: usize) {
        let Some(sort) = self.nodes[slot].sort.take() else { return };
        for (i, group) in [0, self.nodes[slot].group].into_iter().enumerate() {
            let position = std::mem::replace(&mut self.nodes[slot].positions[i], NOWHERE);
            let cheapest = self.nodes[slot].cheapest();
            let entry = &mut self.groups[group];
            entry.order.remove(&sort);
            cheapest.map(|(low, started)| entry.by_loss.remove(&(low, started, position)));
            if !self.is_stale {
                self.update_trees(group, position, None);
            }
        }
    }

    /// Updates the indexes of a group after nodes have moved to or within these positions.
    fn reindex(&mut self, i: usize, group: usize, moved: Range<usize>) {
        let entry = &mut self.groups[group];
        let slots = moved.clone().filter_map(|p| Some((p, entry.order.get(p)?)));
        let slots: Vec<(usize, usize)> = slots.collect();
        let nodes = &mut self.nodes;
        for &(_, slot) in &slots {
            let (cheapest, old) = (nodes[slot].cheapest(), nodes[slot].positions[i]);
            cheapest.map(|(low, started)| entry.by_loss.remove(&(low, started, old)));
        }
        for &(position, slot) in &slots {
            nodes[slot].positions[i] = position;
            let cheapest = nodes[slot].cheapest();
            cheapest.map(|(low, started)| entry.by_loss.insert((low, started, position)));
        }
        for position in moved {
            self.update_trees(group, position, self.groups[group].order.get(position));
        }
    }

    /// Builds the indexes of a group from its order.
    fn build_indexes(&mut self, group: usize) {
        let mut order = std::mem::take(&mut self.groups[group].order);
        order.spread();
        // A group of one needs no tree.
        let (count, width) =
            (if order.len() > 1 { order.positions() } else { 0 }, self.kinds.len());
        let (mut open, mut future) = (Tree::new(count, width), Tree::new(count, width));
        let mut by_loss = Vec::with_capacity(order.len());
        for (position, slot) in order.iter() {
            self.nodes[slot].positions[usize::from(group > 0)] = position;
            if count > 0 {
                let rows = self.unheld_rows(Some(slot));
                open.put(position, &rows[0]);
                future.put(position, &rows[1]);
                self.scratch = rows;
            }
            let cheapest = self.nodes[slot].cheapest();
            by_loss.extend(cheapest.map(|(priority, started)| (priority, started, position)));
        }
        open.build();
        future.build();
        let by_loss = by_loss.into_iter().collect();
        self.groups[group] = Group { order, open, future, by_loss };
        if group == 0 {
            self.preemption_indexes.clear();
            self.changed.clear();
        }
    }

    /// The number of kinds that are more common than each kind.
    pub(super) fn rarities(&self) -> Vec<usize> {
        let more =
            |count: usize| self.nodes_with_kind.iter().filter(|other| **other > count).count();
        // Kinds that no node has do not affect the order.
        self.nodes_with_kind.iter().map(|&count| if count > 0 { more(count) } else { 0 }).collect()
    }

    fn sort(&self, slot: usize) -> Sort {
        let row = self.capacity.row(slot);
        let has = || row.iter().enumerate().filter(|(_, has)| **has > 0);
        let rarity = has().map(|(k, _)| self.rarities[k]).max().unwrap_or(usize::MAX);
        let size = has().map(|(_, has)| log2_1024ths(has.unsigned_abs())).sum();
        let node = &self.nodes[slot];
        Sort { rarity, size, cluster: node.cluster, name: node.name.clone() }
    }
}

/// The binary logarithm in steps of 1/1024, linear between powers of two.
fn log2_1024ths(n: u64) -> u64 {
    let whole = u64::from(n.max(1).ilog2());
    let part = (u128::from(n.max(1)) << 10 >> whole) & 1023;
    whole * 1024 + u64::try_from(part).unwrap_or(0)
}
