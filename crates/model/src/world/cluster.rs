//! Registers clusters and their nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::unit::{Place, Spot};
use super::{State, World};
use crate::{ClusterId, OrganizationId, Resources};

/// Name of the only node of a cluster that declares none.
const ONLY_NODE: &str = "main";

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The id.
    pub id: ClusterId,
    /// The owning organization; none for a shared cluster.
    pub owner: Option<OrganizationId>,
    /// The machine that its containers run on, if its capacity is counted.
    pub machine: Option<String>,
    /// Does it accept units?
    pub is_ready: bool,
    /// Labels that apply to all its nodes.
    pub labels: BTreeMap<String, String>,
    /// Its nodes.
    pub nodes: Vec<Node>,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name, unique in the cluster.
    pub name: String,
    /// Total capacity.
    pub capacity: Resources,
    /// Capacity that was reserved manually.
    pub manually_reserved: Resources,
    /// Its labels, which override those of the cluster.
    pub labels: BTreeMap<String, String>,
}

impl Cluster {
    /// A cluster with one node.
    pub fn single(
        id: ClusterId,
        owner: Option<OrganizationId>,
        capacity: Resources,
        taken: Resources,
    ) -> Self {
        let (name, labels) = (ONLY_NODE.to_owned(), BTreeMap::new());
        let nodes = vec![Node { name, capacity, manually_reserved: taken, labels: labels.clone() }];
        Self { id, owner, machine: None, is_ready: true, labels, nodes }
    }
}

/// A registered cluster.
#[derive(Debug, Clone)]
pub(super) struct ClusterEntry {
    pub(super) owner: Option<OrganizationId>,
    pub(super) machine: Option<usize>,
    pub(super) pool: usize,
    pub(super) nodes: BTreeMap<Arc<str>, usize>,
}

impl World {
    /// Registers or updates a cluster. Nodes that are no longer listed are removed.
    pub fn set_cluster(&mut self, cluster: Cluster) {
        let machine = cluster.machine.as_deref().map(|name| self.ensure_machine(name));
        let existing = self.clusters.get(&cluster.id);
        if existing.is_some_and(|entry| (entry.owner, entry.machine) != (cluster.owner, machine)) {
            self.remove_cluster(cluster.id);
        }
        let is_new = !self.clusters.contains_key(&cluster.id);
        let (owner, nodes) = (cluster.owner, BTreeMap::new());
        let pool = self.ensure_pool(owner, machine);
        let entry = ClusterEntry { owner, machine, pool, nodes };
        self.clusters.entry(cluster.id).or_insert(entry);
        if is_new {
            let pinned = self.pinned.get(&cluster.id).cloned().unwrap_or_default();
            for class in pinned {
                self.unpublish_head(class);
                self.join_pools(class);
            }
        }
        self.remove_unlisted_nodes(&cluster);
        for node in cluster.nodes {
            let mut labels = cluster.labels.clone();
            labels.extend(node.labels.clone());
            self.set_node(cluster.id, pool, cluster.is_ready, &node, labels);
        }
    }

    /// Removes a cluster. Its units remain until they are removed, too.
    pub fn remove_cluster(&mut self, id: ClusterId) {
        let Some(entry) = self.clusters.get(&id) else { return };
        let (pool, slots): (usize, Vec<usize>) =
            (entry.pool, entry.nodes.values().copied().collect());
        for slot in slots {
            self.remove_node(Spot { pool, slot });
        }
        self.clusters.remove(&id);
        for class in self.pinned.get(&id).cloned().unwrap_or_default() {
            self.leave_pools(class);
        }
    }

    /// The pool of an owner's nodes on a machine, or on none that is counted.
    pub(super) fn ensure_pool(
        &mut self,
        owner: Option<OrganizationId>,
        machine: Option<usize>,
    ) -> usize {
        let (pools, machines) = (&mut self.pools, &mut self.machines);
        *self.pool_of.entry((owner, machine)).or_insert_with(|| {
            pools.push(super::Pool::new(owner.is_none(), machine));
            let pool = pools.len() - 1;
            if let Some(machine) = machine {
                machines.entries[machine].pools.push(pool);
            }
            pool
        })
    }

    fn remove_unlisted_nodes(&mut self, cluster: &Cluster) {
        let named: BTreeSet<&str> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
        let Some(entry) = self.clusters.get_mut(&cluster.id) else { return };
        let pool = entry.pool;
        let (listed, unlisted) = std::mem::take(&mut entry.nodes)
            .into_iter()
            .partition(|(name, _)| named.contains(&**name));
        entry.nodes = listed;
        for slot in unlisted.into_values() {
            self.remove_node(Spot { pool, slot });
        }
    }

    fn set_node(
        &mut self,
        cluster: ClusterId,
        pool: usize,
        is_open: bool,
        node: &Node,
        labels: BTreeMap<String, String>,
    ) {
        let Some(entry) = self.clusters.get_mut(&cluster) else { return };
        let existing = entry.nodes.get(node.name.as_str()).copied();
        let slot = existing.unwrap_or_else(|| {
            let name: Arc<str> = node.name.as_str().into();
            let slot = self.pools[pool].add_node(cluster, name.clone());
            entry.nodes.insert(name, slot);
            slot
        });
        let target = Spot { pool, slot };
        let inside = &mut self.pools[pool];
        let (has, taken) = (inside.intern(&node.capacity), inside.intern(&node.manually_reserved));
        let before = inside.snapshot(slot);
        let mut is_changed = inside.set_capacity(slot, &has, &taken) || existing.is_none();
        let inner = &mut inside.nodes[slot];
        is_changed |= inner.is_open != is_open || inner.labels != labels;
        (inner.labels, inner.is_open) = (labels, is_open);
        inside.arrange(slot);
        self.note_shares(pool, is_changed);
        self.check_holds(target);
        if existing.is_none() {
            self.adopt_units(target);
        }
        self.pools[pool].refresh(slot);
        self.touch(target);
        self.check_stale(pool);
        if is_changed {
            self.handle_restructured(pool);
            self.handle_degraded(target, &before);
        }
    }

    /// Revokes holds on a node that their units can no longer use.
    fn check_holds(&mut self, spot: Spot) {
        let holds = &self.pools[spot.pool].nodes[spot.slot].holds;
        let holders: Vec<usize> = holds.iter().map(|hold| hold.unit).collect();
        for unit in holders {
            let class = self.entries[unit].class;
            let usable = self.classes[class].demand(spot.pool).is_some_and(|demand| {
                self.pools[spot.pool].nodes[spot.slot].is_open
                    && self.fits_empty(class, spot, demand)
            });
            if !usable {
                self.revoke_hold(unit);
            }
        }
    }

    pub(super) fn check_stale(&mut self, pool: usize) {
        if self.pools[pool].is_stale {
            self.stale_pools.insert(pool);
        }
    }

    /// Assigns the units that were placed on a node before it was registered.
    fn adopt_units(&mut self, spot: Spot) {
        for unit in self.unassigned.remove(&self.place(spot)).unwrap_or_default() {
            let by = match &self.entries[unit].state {
                State::Stopping { by, .. } => Some(*by),
                _ => None,
            };
            let (State::Placed { place, started, .. } | State::Stopping { place, started, .. }) =
                self.entries[unit].state.clone()
            else {
                continue;
            };
            self.assign(unit, place, started);
            if let Some(by) = by {
                self.stop(unit, by);
            }
        }
    }

    fn remove_node(&mut self, spot: Spot) {
        let place = self.place(spot);
        let node = &self.pools[spot.pool].nodes[spot.slot];
        let holders: Vec<usize> = node.holds.iter().map(|hold| hold.unit).collect();
        let stopping = node.stopping.iter().map(|(unit, _)| *unit);
        let placed: Vec<usize> = node.residents.iter().map(|r| r.unit).chain(stopping).collect();
        for unit in holders {
            self.revoke_hold(unit);
        }
        for unit in placed {
            self.detach(unit, &place);
        }
        let before = self.pools[spot.pool].snapshot(spot.slot);
        self.pools[spot.pool].remove_node(spot.slot);
        self.work.remove(spot);
        self.check_stale(spot.pool);
        self.handle_restructured(spot.pool);
        self.handle_degraded(spot, &before);
    }

    fn detach(&mut self, unit: usize, place: &Place) {
        self.vacate(unit);
        if let State::Placed { spot, .. } | State::Stopping { spot, .. } =
            &mut self.entries[unit].state
        {
            *spot = None;
        }
        self.unassigned.entry(place.clone()).or_default().insert(unit);
    }
}
