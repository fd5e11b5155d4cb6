//! The nodes of one owner with the indexes that find the right one among thousands.
//!
//! A pool has its own resource kinds, so that what one organization invents costs nobody else.

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
use super::tree::{CLOSED, Tree};
use super::unit::{Rank, UnitId};
use super::vector::{Kinds, Rows, Want};
use crate::{ClusterId, Time};

/// Nodes that are searched together: a whole pool, or one cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// Which node is where; what is scarce comes last, so that first fit keeps it.
    pub(super) order: Order,
    /// What is free and kept for nobody.
    pub(super) open: Tree,
    /// The same once everybody who stops has stopped.
    pub(super) coming: Tree,
    /// Nodes by who on them would hurt least to lose.
    pub(super) yielding: BTreeSet<(i64, Reverse<Time>, usize)>,
}

/// The nodes of one organization, or those that all share.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    pub(super) kinds: Kinds,
    pub(super) nodes: Vec<Node>,
    /// Slots whose node is gone.
    vacant: Vec<usize>,
    /// The first is the whole pool, the others are clusters.
    pub(super) groups: Vec<Group>,
    group_of: HashMap<ClusterId, usize>,
    capacity: Rows,
    taken: Rows,
    used: Rows,
    stopping: Rows,
    kept: Rows,
    pub(super) queue: Queue,
    /// All holds by rank: whose, and where.
    pub(super) holds: BTreeMap<Rank, (usize, usize)>,
    /// The holds that wait for capacity to be freed, by rank.
    pub(super) aged: BTreeMap<Rank, usize>,
    /// Heads that have waited long enough for such a hold and have none, with their classes.
    pub(super) wanting: BTreeMap<Rank, usize>,
    /// Those who may use this pool and whose room is being made, here or in another pool.
    pub(super) promised: BTreeMap<Rank, usize>,
    /// Classes that ask for kinds that the pool has never heard of.
    pub(super) puzzled: BTreeSet<usize>,
    /// Classes whose heads have waited long enough and would want room here, were there a node for
    /// them.
    pub(super) overdue: BTreeSet<usize>,
    /// How many nodes have something of each kind.
    owners: Vec<usize>,
    /// How rare each kind is, as the orders know it.
    rarities: Vec<usize>,
    /// Must the orders be computed anew?
    pub(super) is_stale: bool,
    /// What can be had of each node of the pool by displacing all below a priority, for the
    /// priorities that asked last. Only ever a shortcut.
    reach: Vec<Reach>,
    /// Positions that changed lately, for those trees to catch up.
    changed: Vec<usize>,
    scratch: [Vec<i64>; 2],
}

/// What a node was like before it changed.
#[derive(Debug)]
pub(super) struct Was {
    sort: Option<Sort>,
    labels: BTreeMap<String, String>,
    pub(super) is_open: bool,
    capacity: Vec<i64>,
}

/// How many nodes on both sides are near.
const NEAR: usize = 16;

/// What can be had of each node by displacing all below a priority, as of some change.
#[derive(Debug, Clone)]
struct Reach {
    priority: i64,
    tree: Tree,
    /// How many of the pool's changes it knows.
    seen: usize,
}

/// For how many priorities such trees are kept.
const REACHES: usize = if cfg!(test) { 2 } else { 16 };
/// How many changes a tree may be behind before it is given up.
const BEHIND: usize = if cfg!(test) { 8 } else { 2048 };

impl Pool {
    /// A node of a cluster; the indexes learn of it at the next [`Pool::settle`].
    pub(super) fn add_node(&mut self, cluster: ClusterId, name: Arc<str>) -> usize {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let groups = &mut self.groups;
        let group = *self.group_of.entry(cluster).or_insert_with(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        let node = Node::new(cluster, name, group);
        if let Some(slot) = self.vacant.pop() {
            self.nodes[slot] = node;
            return slot;
        }
        self.nodes.push(node);
        self.resize();
        self.nodes.len() - 1
    }

    /// Forgets a node that nobody is on and nobody waits for.
    pub(super) fn remove_node(&mut self, slot: usize) {
        let node = &mut self.nodes[slot];
        debug_assert!(
            node.residents.is_empty() && node.leaving.is_empty() && node.holds.is_empty()
        );
        node.is_open = false;
        for (owners, has) in self.owners.iter_mut().zip(self.capacity.row(slot)) {
            *owners -= usize::from(*has > 0);
        }
        self.withdraw(slot);
        for rows in [&mut self.capacity, &mut self.taken, &mut self.used, &mut self.stopping] {
            rows.row_mut(slot).fill(0);
        }
        self.kept.row_mut(slot).fill(0);
        self.vacant.push(slot);
        self.is_stale |= self.rarities() != self.rarities;
    }

    /// Makes all rows as many and as wide as there are nodes and kinds.
    pub(super) fn resize(&mut self) {
        let (count, width) = (self.nodes.len(), self.kinds.len());
        for rows in [&mut self.capacity, &mut self.taken, &mut self.used, &mut self.stopping] {
            rows.resize(count, width);
        }
        self.kept.resize(count, width);
        self.owners.resize(width, 0);
        self.queue.widen(width);
    }

    /// Reads a vector, giving new kinds columns.
    pub(super) fn learn(&mut self, vector: &crate::Resources) -> Want {
        let before = self.kinds.len();
        let want = self.kinds.learn(vector);
        if self.kinds.len() != before {
            self.is_stale = true;
            self.resize();
        }
        want
    }

    /// Sets what a node has and what is taken of it by hand. Tells whether it has other than before.
    pub(super) fn set_capacity(&mut self, slot: usize, has: &Want, taken: &Want) -> bool {
        let before = self.capacity.row(slot).to_vec();
        for (rows, want) in [(&mut self.capacity, has), (&mut self.taken, taken)] {
            rows.row_mut(slot).fill(0);
            rows.add(slot, want, 1);
        }
        let after = self.capacity.row(slot);
        for ((owners, before), after) in self.owners.iter_mut().zip(&before).zip(after) {
            *owners = *owners + usize::from(*after > 0) - usize::from(*before > 0);
        }
        before != after
    }

    /// Is there a node near by that takes units and is as good as one was?
    pub(super) fn has_another(&self, slot: usize, was: &Was) -> bool {
        let (Some(sort), Some(all)) = (&was.sort, self.groups.first()) else { return false };
        all.order.near(sort, NEAR).filter(|other| *other != slot).any(|other| {
            let node = &self.nodes[other];
            let is_as_large =
                self.capacity.row(other).iter().zip(&was.capacity).all(|(a, b)| a >= b);
            node.is_open && is_as_large && node.labels == was.labels
        })
    }

    /// Could somebody have used a node who can't any more?
    pub(super) fn is_worse(&self, slot: usize, was: &Was) -> bool {
        let node = &self.nodes[slot];
        let has_less = was.capacity.iter().zip(self.capacity.row(slot)).any(|(a, b)| a > b);
        was.is_open && (!node.is_open || has_less || node.labels != was.labels)
    }

    /// What a node is like.
    pub(super) fn was(&self, slot: usize) -> Was {
        let node = &self.nodes[slot];
        let capacity = self.capacity.row(slot).to_vec();
        let (sort, labels) = (node.sort.clone(), node.labels.clone());
        Was { sort, labels, is_open: node.is_open, capacity }
    }

    pub(super) fn capacity(&self, slot: usize) -> &[i64] {
        self.capacity.row(slot)
    }

    /// What nobody has now.
    pub(super) fn free(&self, slot: usize, k: usize) -> i64 {
        self.capacity
            .at(slot, k)
            .saturating_sub(self.taken.at(slot, k))
            .saturating_sub(self.used.at(slot, k))
    }

    /// What nobody has once all who stop have stopped.
    pub(super) fn soon(&self, slot: usize, k: usize) -> i64 {
        self.free(slot, k).saturating_add(self.stopping.at(slot, k))
    }

    /// Does `want` fit now, for somebody of this rank?
    pub(super) fn fits_now(&self, slot: usize, want: &[(usize, i64)], rank: &Rank) -> bool {
        let node = &self.nodes[slot];
        node.is_open
            && want.iter().all(|&(k, amount)| {
                let soon = self.soon(slot, k).saturating_sub(node.held_for(rank, k));
                amount <= soon.min(self.free(slot, k))
            })
    }

    /// Does it fit once all who stop have stopped?
    pub(super) fn fits_soon(&self, slot: usize, want: &[(usize, i64)], rank: &Rank) -> bool {
        let node = &self.nodes[slot];
        let room = |k| self.soon(slot, k).saturating_sub(node.held_for(rank, k));
        node.is_open && want.iter().all(|&(k, amount)| amount <= room(k))
    }

    /// What somebody of this rank could get of a column if all lower priorities yielded.
    pub(super) fn reach(&self, slot: usize, k: usize, rank: &Rank) -> i64 {
        let node = &self.nodes[slot];
        let soon = self.soon(slot, k).saturating_sub(node.held_for(rank, k));
        soon.saturating_add(node.held_below(rank.priority.0, k))
    }

    /// Does it fit if all lower priorities yield?
    pub(super) fn fits_after(&self, slot: usize, want: &[(usize, i64)], rank: &Rank) -> bool {
        self.nodes[slot].is_open
            && want.iter().all(|&(k, amount)| amount <= self.reach(slot, k, rank))
    }

    /// How much is missing for `want`, in thousandths of what the node has, all kinds together.
    pub(super) fn lack_permille(&self, slot: usize, want: &[(usize, i64)], rank: &Rank) -> i128 {
        let node = &self.nodes[slot];
        let lack = |&(k, amount): &(usize, i64)| {
            let room = self.soon(slot, k).saturating_sub(node.held_for(rank, k));
            let (missing, has) = (amount.saturating_sub(room), self.capacity.at(slot, k).max(1));
            match missing.max(0).checked_mul(1000) {
                Some(thousandfold) => i128::from(thousandfold / has),
                None => i128::from(missing) * 1000 / i128::from(has),
            }
        };
        want.iter().map(lack).sum()
    }

    pub(super) fn occupy(&mut self, slot: usize, resident: Resident) {
        self.used.add(slot, &resident.want, 1);
        self.change(slot, |node| node.join(resident));
    }

    /// A resident is no longer one: it stops, or it is gone.
    pub(super) fn vacate(
        &mut self,
        slot: usize,
        id: UnitId,
        priority: i64,
        started: Time,
        stops: bool,
    ) {
        let Some(resident) = self.change(slot, |node| node.part(id, priority, started)) else {
            return;
        };
        if stops {
            self.stopping.add(slot, &resident.want, 1);
            self.nodes[slot].leaving.push((resident.unit, resident.want));
        } else {
            self.used.add(slot, &resident.want, -1);
        }
        self.refresh(slot);
    }

    /// Somebody who was stopping has stopped.
    pub(super) fn release(&mut self, slot: usize, unit: usize) {
        let node = &mut self.nodes[slot];
        let Some(at) = node.leaving.iter().position(|(other, _)| *other == unit) else { return };
        let (_, want) = node.leaving.swap_remove(at);
        self.used.add(slot, &want, -1);
        self.stopping.add(slot, &want, -1);
        self.refresh(slot);
    }

    pub(super) fn hold(&mut self, slot: usize, hold: Hold) {
        self.kept.add(slot, &hold.want, 1);
        self.holds.insert(hold.rank, (hold.unit, slot));
        let holds = &mut self.nodes[slot].holds;
        let at = holds.partition_point(|other| other.rank < hold.rank);
        holds.insert(at, hold);
        self.refresh(slot);
    }

    pub(super) fn let_go(&mut self, slot: usize, rank: &Rank) {
        let holds = &mut self.nodes[slot].holds;
        let Some(at) = holds.iter().position(|hold| hold.rank == *rank) else { return };
        let hold = holds.remove(at);
        self.kept.add(slot, &hold.want, -1);
        self.holds.remove(rank);
        self.aged.remove(rank);
        self.refresh(slot);
    }

    /// Changes who is on a node, keeping the order of who would hurt least.
    fn change<T>(&mut self, slot: usize, change: impl FnOnce(&mut Node) -> T) -> T {
        let before = self.nodes[slot].cheapest();
        let result = change(&mut self.nodes[slot]);
        let node = &self.nodes[slot];
        let after = node.cheapest();
        if !self.is_stale && node.sort.is_some() && before != after {
            for (group, position) in [0, node.group].into_iter().zip(node.positions) {
                let yielding = &mut self.groups[group].yielding;
                before.map(|(priority, started)| yielding.remove(&(priority, started, position)));
                after.map(|(priority, started)| yielding.insert((priority, started, position)));
            }
        }
        self.refresh(slot);
        result
    }

    /// Tells the trees what a node has now.
    pub(super) fn refresh(&mut self, slot: usize) {
        if self.is_stale || self.nodes[slot].sort.is_none() {
            return;
        }
        for (i, group) in [0, self.nodes[slot].group].into_iter().enumerate() {
            self.show(group, self.nodes[slot].positions[i], Some(slot));
        }
    }

    /// Tells the trees of a group what is at a position.
    fn show(&mut self, group: usize, position: usize, slot: Option<usize>) {
        let rows = self.rooms(slot);
        let inside = &mut self.groups[group];
        if !inside.open.is_empty() {
            inside.open.set(position, &rows[0]);
            inside.coming.set(position, &rows[1]);
        }
        self.scratch = rows;
        if group == 0 && !self.reach.is_empty() {
            self.changed.push(position);
            if self.changed.len() == 2 * BEHIND {
                self.forget_changes();
            }
        }
    }

    /// Forgets the older changes, and the trees that do not know them.
    fn forget_changes(&mut self) {
        self.changed.drain(..BEHIND);
        self.reach.retain(|reach| reach.seen >= BEHIND);
        for reach in &mut self.reach {
            reach.seen -= BEHIND;
        }
    }

    fn reach_row(&self, slot: Option<usize>, priority: i64) -> Vec<i64> {
        let open = slot.filter(|slot| self.nodes[*slot].is_open);
        let reach = |slot: usize, k| {
            let below = self.nodes[slot].held_below(priority, k);
            self.soon(slot, k).saturating_add(below)
        };
        (0..self.kinds.len()).map(|k| open.map_or(CLOSED, |slot| reach(slot, k))).collect()
    }

    /// Positions where `want` fits if all below a priority yield and nothing is kept; none if there
    /// are more than `most`.
    pub(super) fn reachable(
        &mut self,
        want: &[(usize, i64)],
        priority: i64,
        most: usize,
    ) -> Option<Vec<usize>> {
        let known = self.reach.iter().position(|reach| reach.priority == priority);
        let tree = match known {
            Some(at) => self.catch_up(at),
            None => self.plant_reach(priority),
        };
        let mut found = Vec::new();
        tree.each_fit(want, &mut |position| {
            found.extend(self.groups[0].order.get(position).map(|_| position));
            if found.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if self.reach.len() == REACHES {
            self.reach.remove(0);
        }
        self.reach.push(Reach { priority, tree, seen: self.changed.len() });
        (found.len() <= most).then_some(found)
    }

    /// Takes a tree out, told of all that has changed.
    fn catch_up(&mut self, at: usize) -> Tree {
        let Reach { priority, mut tree, seen } = self.reach.remove(at);
        for &position in &self.changed[seen..] {
            let slot = self.groups[0].order.get(position);
            tree.set(position, &self.reach_row(slot, priority));
        }
        tree
    }

    fn plant_reach(&self, priority: i64) -> Tree {
        let order = &self.groups[0].order;
        let mut tree = Tree::new(order.positions(), self.kinds.len());
        for (position, slot) in order.iter() {
            tree.put(position, &self.reach_row(Some(slot), priority));
        }
        tree.build();
        tree
    }

    /// What is open and what is coming, kept for nobody.
    fn rooms(&mut self, slot: Option<usize>) -> [Vec<i64>; 2] {
        let mut rows = std::mem::take(&mut self.scratch);
        rows.iter_mut().for_each(Vec::clear);
        let Some(slot) = slot.filter(|slot| self.nodes[*slot].is_open) else {
            for row in &mut rows {
                row.resize(self.kinds.len(), CLOSED);
            }
            return rows;
        };
        for k in 0..self.kinds.len() {
            let coming = self.soon(slot, k).saturating_sub(self.kept.at(slot, k));
            rows[0].push(coming.min(self.free(slot, k)));
            rows[1].push(coming);
        }
        rows
    }

    /// Is `want` open (or at least coming), counting what is kept for anybody?
    pub(super) fn has_room(&self, slot: usize, want: &[(usize, i64)], soon: bool) -> bool {
        let room = |k| {
            let coming = self.soon(slot, k).saturating_sub(self.kept.at(slot, k));
            if soon { coming } else { coming.min(self.free(slot, k)) }
        };
        self.nodes[slot].is_open && want.iter().all(|&(k, amount)| amount <= room(k))
    }
}
