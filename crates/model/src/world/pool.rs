//! The nodes of one owner, with indexes that find a fitting node among thousands.
//!
//! Each pool has its own resource kinds, so custom kinds of one organization cost no other pool.

mod arrange;
#[cfg(test)]
mod check;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::node::{Hold, Node, Resident};
use super::order::{Order, Sort};
use super::queue::Queue;
use super::share::Shares;
use super::tree::{CLOSED, Tree};
use super::unit::{Rank, UnitId};
use super::vector::{Amounts, Kinds, Rows};
use crate::{ClusterId, Time};

/// Nodes that are searched together: a whole pool, or one cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// Nodes in search order; scarce kinds come last, so that first fit preserves them.
    pub(super) order: Order,
    /// Free capacity that is not held.
    pub(super) open: Tree,
    /// The same, counting the capacity of stopping units as free.
    pub(super) future: Tree,
    /// Nodes by their cheapest preemption victim.
    pub(super) by_loss: BTreeSet<(i64, Reverse<Time>, usize)>,
}

/// The nodes of one organization, or all shared nodes, on one machine or on none that is counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    /// The machine that all its nodes are on.
    pub(super) machine: Option<usize>,
    /// Usage by organization, by group, if several organizations use the pool.
    pub(super) shares: Option<Vec<Shares>>,
    pub(super) kinds: Kinds,
    pub(super) nodes: Vec<Node>,
    /// Slots without a node.
    vacant: Vec<usize>,
    /// The first is the whole pool, the others are its clusters.
    pub(super) groups: Vec<Group>,
    group_of: HashMap<ClusterId, usize>,
    capacity: Rows,
    manual: Rows,
    used: Rows,
    stopping: Rows,
    held: Rows,
    pub(super) queue: Queue,
    /// All holds by rank: unit and slot.
    pub(super) holds: BTreeMap<Rank, (usize, usize)>,
    /// Holds of long-pending units that still lack capacity, by rank.
    pub(super) aged: BTreeMap<Rank, usize>,
    /// Heads that are due for such a hold and have none, with their classes.
    pub(super) due_heads: BTreeMap<Rank, usize>,
    /// Units that may use this pool and have a promised hold, here or in another pool.
    pub(super) promised: BTreeMap<Rank, usize>,
    /// Classes that request kinds that no node of the pool has.
    pub(super) unresolved: BTreeSet<usize>,
    /// Classes whose heads are due for a hold and would prefer this pool if a node fitted them.
    pub(super) overdue: BTreeSet<usize>,
    /// Number of nodes with capacity of each kind.
    nodes_with_kind: Vec<usize>,
    /// Rarity of each kind, as of the last rebuild.
    rarities: Vec<usize>,
    /// Must the orders and indexes be rebuilt?
    pub(super) is_stale: bool,
    /// Indexes of what each node has after preempting all below a priority, for the priorities
    /// that were queried last. A cache.
    preemption_indexes: Vec<PreemptionIndex>,
    /// Recently changed positions, which these indexes have yet to apply.
    changed: Vec<usize>,
    scratch: [Vec<i64>; 2],
}

/// A node before a change.
#[derive(Debug)]
pub(super) struct Snapshot {
    sort: Option<Sort>,
    labels: BTreeMap<String, String>,
    pub(super) is_open: bool,
    capacity: Vec<i64>,
}

/// Number of neighbours on each side that are searched for an equivalent node.
const NEIGHBOURS: usize = 16;

/// What each node has after preempting all below a priority, as of some change.
#[derive(Debug, Clone)]
struct PreemptionIndex {
    priority: i64,
    tree: Tree,
    /// Number of the pool's changes that were applied.
    applied: usize,
}

/// Maximum number of such indexes.
const MAX_PREEMPTION_INDEXES: usize = if cfg!(test) { 2 } else { 16 };
/// Number of changes that an index may lag behind before it is evicted.
const MAX_LAG: usize = if cfg!(test) { 8 } else { 2048 };

impl Pool {
    /// An empty pool of nodes on a machine; `is_shared` if several organizations use it.
    pub(super) fn new(is_shared: bool, machine: Option<usize>) -> Self {
        let shares = is_shared.then(|| vec![Shares::default()]);
        Self { machine, shares, ..Self::default() }
    }

    /// Adds a node; it is indexed by [`Pool::arrange`] or the next [`Pool::rebuild`].
    pub(super) fn add_node(&mut self, cluster: ClusterId, name: Arc<str>) -> usize {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let groups = &mut self.groups;
        let group = *self.group_of.entry(cluster).or_insert_with(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        if let Some(shares) = &mut self.shares {
            shares.resize_with(groups.len(), Shares::default);
        }
        let node = Node::new(cluster, name, group);
        if let Some(slot) = self.vacant.pop() {
            self.nodes[slot] = node;
            return slot;
        }
        self.nodes.push(node);
        self.resize();
        self.nodes.len() - 1
    }

    /// Removes a node without units and holds.
    pub(super) fn remove_node(&mut self, slot: usize) {
        let node = &mut self.nodes[slot];
        debug_assert!(
            node.residents.is_empty() && node.stopping.is_empty() && node.holds.is_empty()
        );
        node.is_open = false;
        let group = node.group;
        if let Some(shares) = &mut self.shares {
            shares[group].grow(self.capacity.row(slot), -1);
        }
        for (owners, has) in self.nodes_with_kind.iter_mut().zip(self.capacity.row(slot)) {
            *owners -= usize::from(*has > 0);
        }
        self.withdraw(slot);
        for rows in [&mut self.capacity, &mut self.manual, &mut self.used, &mut self.stopping] {
            rows.row_mut(slot).fill(0);
        }
        self.held.row_mut(slot).fill(0);
        self.vacant.push(slot);
        self.is_stale |= self.rarities() != self.rarities;
    }

    /// Resizes all rows to the number of nodes and kinds.
    pub(super) fn resize(&mut self) {
        let (count, width) = (self.nodes.len(), self.kinds.len());
        for rows in [&mut self.capacity, &mut self.manual, &mut self.used, &mut self.stopping] {
            rows.resize(count, width);
        }
        self.held.resize(count, width);
        self.nodes_with_kind.resize(width, 0);
        self.queue.widen(width);
    }

    /// Converts a vector to columns, adding columns for new kinds.
    pub(super) fn intern(&mut self, vector: &crate::Resources) -> Amounts {
        let before = self.kinds.len();
        let demand = self.kinds.intern(vector);
        if self.kinds.len() != before {
            self.is_stale = true;
            self.resize();
        }
        demand
    }

    /// Sets a node's capacity and its manual reservation. Returns whether the capacity changed.
    pub(super) fn set_capacity(&mut self, slot: usize, has: &Amounts, manual: &Amounts) -> bool {
        let before = self.capacity.row(slot).to_vec();
        for (rows, demand) in [(&mut self.capacity, has), (&mut self.manual, manual)] {
            rows.row_mut(slot).fill(0);
            rows.add(slot, demand, 1);
        }
        let after = self.capacity.row(slot);
        if let Some(shares) = &mut self.shares {
            let shares = &mut shares[self.nodes[slot].group];
            shares.grow(&before, -1);
            shares.grow(after, 1);
        }
        for ((owners, before), after) in self.nodes_with_kind.iter_mut().zip(&before).zip(after) {
            *owners = *owners + usize::from(*after > 0) - usize::from(*before > 0);
        }
        before != after
    }

    /// Is there an open node nearby that is as good as the old one?
    pub(super) fn has_equivalent(&self, slot: usize, before: &Snapshot) -> bool {
        let (Some(sort), Some(all)) = (&before.sort, self.groups.first()) else { return false };
        all.order.near(sort, NEIGHBOURS).filter(|other| *other != slot).any(|other| {
            let node = &self.nodes[other];
            let is_as_large =
                self.capacity.row(other).iter().zip(&before.capacity).all(|(a, b)| a >= b);
            node.is_open && is_as_large && node.labels == before.labels
        })
    }

    /// Did the change make the node unusable for some units?
    pub(super) fn is_degraded(&self, slot: usize, before: &Snapshot) -> bool {
        let node = &self.nodes[slot];
        let has_less = before.capacity.iter().zip(self.capacity.row(slot)).any(|(a, b)| a > b);
        before.is_open && (!node.is_open || has_less || node.labels != before.labels)
    }

    pub(super) fn snapshot(&self, slot: usize) -> Snapshot {
        let node = &self.nodes[slot];
        let capacity = self.capacity.row(slot).to_vec();
        let (sort, labels) = (node.sort.clone(), node.labels.clone());
        Snapshot { sort, labels, is_open: node.is_open, capacity }
    }

    pub(super) fn capacity(&self, slot: usize) -> &[i64] {
        self.capacity.row(slot)
    }

    /// Free capacity.
    pub(super) fn free(&self, slot: usize, k: usize) -> i64 {
        self.capacity
            .at(slot, k)
            .saturating_sub(self.manual.at(slot, k))
            .saturating_sub(self.used.at(slot, k))
    }

    /// Free capacity once the stopping units have stopped.
    pub(super) fn future_free(&self, slot: usize, k: usize) -> i64 {
        self.free(slot, k).saturating_add(self.stopping.at(slot, k))
    }

    /// The same, less what is held for better ranks.
    pub(super) fn future_free_for(&self, slot: usize, k: usize, rank: &Rank) -> i64 {
        self.future_free(slot, k).saturating_sub(self.nodes[slot].held_ahead(rank, k))
    }

    /// Does `demand` fit now for a unit of this rank?
    pub(super) fn fits_now(&self, slot: usize, demand: &[(usize, i64)], rank: &Rank) -> bool {
        let free = |k| self.future_free_for(slot, k, rank).min(self.free(slot, k));
        self.nodes[slot].is_open && demand.iter().all(|&(k, amount)| amount <= free(k))
    }

    /// Does `demand` fit once the stopping units have stopped?
    pub(super) fn fits_future(&self, slot: usize, demand: &[(usize, i64)], rank: &Rank) -> bool {
        let free = |k| self.future_free_for(slot, k, rank);
        self.nodes[slot].is_open && demand.iter().all(|&(k, amount)| amount <= free(k))
    }

    /// What a unit of this rank has of a column after preempting all lower priorities.
    pub(super) fn free_preempting(&self, slot: usize, k: usize, rank: &Rank) -> i64 {
        let preemptible = self.nodes[slot].used_below(rank.priority.0, k);
        self.future_free_for(slot, k, rank).saturating_add(preemptible)
    }

    /// Does `demand` fit after preempting all lower priorities?
    pub(super) fn fits_preempting(
        &self,
        slot: usize,
        demand: &[(usize, i64)],
        rank: &Rank,
    ) -> bool {
        self.nodes[slot].is_open
            && demand.iter().all(|&(k, amount)| amount <= self.free_preempting(slot, k, rank))
    }

    /// The shortage for `demand` summed over kinds, in thousandths of the node's capacity.
    pub(super) fn lack_permille(&self, slot: usize, demand: &[(usize, i64)], rank: &Rank) -> i128 {
        let lack = |&(k, amount): &(usize, i64)| {
            let free = self.future_free_for(slot, k, rank);
            let (missing, has) = (amount.saturating_sub(free), self.capacity.at(slot, k).max(1));
            match missing.max(0).checked_mul(1000) {
                Some(thousandfold) => i128::from(thousandfold / has),
                None => i128::from(missing) * 1000 / i128::from(has),
            }
        };
        demand.iter().map(lack).sum()
    }

    pub(super) fn occupy(&mut self, slot: usize, resident: Resident) {
        self.used.add(slot, &resident.demand, 1);
        self.count_share(slot, &resident, 1);
        self.change(slot, |node| node.add_resident(resident));
    }

    /// Removes a resident, which is stopping or has ended.
    pub(super) fn vacate(
        &mut self,
        slot: usize,
        id: UnitId,
        priority: i64,
        started: Time,
        stops: bool,
    ) {
        let Some(resident) = self.change(slot, |node| node.remove_resident(id, priority, started))
        else {
            return;
        };
        self.count_share(slot, &resident, -1);
        if stops {
            self.stopping.add(slot, &resident.demand, 1);
            self.nodes[slot].stopping.push((resident.unit, resident.demand));
        } else {
            self.used.add(slot, &resident.demand, -1);
        }
        self.refresh(slot);
    }

    fn count_share(&mut self, slot: usize, resident: &Resident, sign: i64) {
        if let Some(shares) = &mut self.shares {
            shares[self.nodes[slot].group].count(resident, sign);
        }
    }

    /// Releases the capacity of a stopping unit that has stopped.
    pub(super) fn release(&mut self, slot: usize, unit: usize) {
        let node = &mut self.nodes[slot];
        let Some(at) = node.stopping.iter().position(|(other, _)| *other == unit) else { return };
        let (_, demand) = node.stopping.swap_remove(at);
        self.used.add(slot, &demand, -1);
        self.stopping.add(slot, &demand, -1);
        self.refresh(slot);
    }

    pub(super) fn add_hold(&mut self, slot: usize, hold: Hold) {
        self.held.add(slot, &hold.demand, 1);
        self.holds.insert(hold.rank, (hold.unit, slot));
        let holds = &mut self.nodes[slot].holds;
        let at = holds.partition_point(|other| other.rank < hold.rank);
        holds.insert(at, hold);
        self.refresh(slot);
    }

    pub(super) fn release_hold(&mut self, slot: usize, rank: &Rank) {
        let holds = &mut self.nodes[slot].holds;
        let Some(at) = holds.iter().position(|hold| hold.rank == *rank) else { return };
        let hold = holds.remove(at);
        self.held.add(slot, &hold.demand, -1);
        self.holds.remove(rank);
        self.aged.remove(rank);
        self.refresh(slot);
    }

    /// Changes the residents of a node and updates the index of cheapest victims.
    fn change<T>(&mut self, slot: usize, change: impl FnOnce(&mut Node) -> T) -> T {
        let before = self.nodes[slot].cheapest();
        let result = change(&mut self.nodes[slot]);
        let node = &self.nodes[slot];
        let after = node.cheapest();
        if !self.is_stale && node.sort.is_some() && before != after {
            for (group, position) in [0, node.group].into_iter().zip(node.positions) {
                let by_loss = &mut self.groups[group].by_loss;
                before.map(|(priority, started)| by_loss.remove(&(priority, started, position)));
                after.map(|(priority, started)| by_loss.insert((priority, started, position)));
            }
        }
        self.refresh(slot);
        result
    }

    /// Updates the trees with a node's free capacity.
    pub(super) fn refresh(&mut self, slot: usize) {
        if self.is_stale || self.nodes[slot].sort.is_none() {
            return;
        }
        for (i, group) in [0, self.nodes[slot].group].into_iter().enumerate() {
            self.update_trees(group, self.nodes[slot].positions[i], Some(slot));
        }
    }

    /// Updates the trees of a group at a position.
    fn update_trees(&mut self, group: usize, position: usize, slot: Option<usize>) {
        let rows = self.unheld_rows(slot);
        let trees = &mut self.groups[group];
        if !trees.open.is_empty() {
            trees.open.set(position, &rows[0]);
            trees.future.set(position, &rows[1]);
        }
        self.scratch = rows;
        if group == 0 && !self.preemption_indexes.is_empty() {
            self.changed.push(position);
            if self.changed.len() == 2 * MAX_LAG {
                self.trim_changes();
            }
        }
    }

    /// Drops the older changes, and the indexes that have not applied them.
    fn trim_changes(&mut self) {
        self.changed.drain(..MAX_LAG);
        self.preemption_indexes.retain(|index| index.applied >= MAX_LAG);
        for index in &mut self.preemption_indexes {
            index.applied -= MAX_LAG;
        }
    }

    fn preemption_row(&self, slot: Option<usize>, priority: i64) -> Vec<i64> {
        let open = slot.filter(|slot| self.nodes[*slot].is_open);
        let free = |slot: usize, k| {
            let below = self.nodes[slot].used_below(priority, k);
            self.future_free(slot, k).saturating_add(below)
        };
        (0..self.kinds.len()).map(|k| open.map_or(CLOSED, |slot| free(slot, k))).collect()
    }

    /// Positions where `demand` fits after preempting all below a priority, ignoring holds; none if
    /// there are more than `most`.
    pub(super) fn preemption_candidates(
        &mut self,
        demand: &[(usize, i64)],
        priority: i64,
        most: usize,
    ) -> Option<Vec<usize>> {
        let cached = self.preemption_indexes.iter().position(|index| index.priority == priority);
        let tree = match cached {
            Some(at) => self.catch_up(at),
            None => self.build_preemption_tree(priority),
        };
        let mut found = Vec::new();
        tree.each_fit(demand, &mut |position| {
            found.extend(self.groups[0].order.get(position).map(|_| position));
            if found.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if self.preemption_indexes.len() == MAX_PREEMPTION_INDEXES {
            self.preemption_indexes.remove(0);
        }
        self.preemption_indexes.push(PreemptionIndex {
            priority,
            tree,
            applied: self.changed.len(),
        });
        (found.len() <= most).then_some(found)
    }

    /// Removes an index from the cache and applies all changes to its tree.
    fn catch_up(&mut self, at: usize) -> Tree {
        let PreemptionIndex { priority, mut tree, applied } = self.preemption_indexes.remove(at);
        for &position in &self.changed[applied..] {
            let slot = self.groups[0].order.get(position);
            tree.set(position, &self.preemption_row(slot, priority));
        }
        tree
    }

    fn build_preemption_tree(&self, priority: i64) -> Tree {
        let order = &self.groups[0].order;
        let mut tree = Tree::new(order.positions(), self.kinds.len());
        for (position, slot) in order.iter() {
            tree.put(position, &self.preemption_row(Some(slot), priority));
        }
        tree.build();
        tree
    }

    /// Unheld free capacity of a node, now and once the stopping units have stopped.
    fn unheld_rows(&mut self, slot: Option<usize>) -> [Vec<i64>; 2] {
        let mut rows = std::mem::take(&mut self.scratch);
        rows.iter_mut().for_each(Vec::clear);
        let Some(slot) = slot.filter(|slot| self.nodes[*slot].is_open) else {
            for row in &mut rows {
                row.resize(self.kinds.len(), CLOSED);
            }
            return rows;
        };
        for k in 0..self.kinds.len() {
            let future_unheld = self.future_free(slot, k).saturating_sub(self.held.at(slot, k));
            rows[0].push(future_unheld.min(self.free(slot, k)));
            rows[1].push(future_unheld);
        }
        rows
    }

    /// Does `demand` fit into unheld free capacity, now or once the stopping units have stopped?
    pub(super) fn has_unheld(&self, slot: usize, demand: &[(usize, i64)], future: bool) -> bool {
        let free = |k| {
            let future_unheld = self.future_free(slot, k).saturating_sub(self.held.at(slot, k));
            if future { future_unheld } else { future_unheld.min(self.free(slot, k)) }
        };
        self.nodes[slot].is_open && demand.iter().all(|&(k, amount)| amount <= free(k))
    }
}
