//! Clusters and their nodes, as the world is told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::unit::{Place, Spot};
use super::{State, World};
use crate::{ClusterId, OrganizationId, Resources};

/// What a cluster without nodes calls its one node.
const ONLY_NODE: &str = "main";

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its id.
    pub id: ClusterId,
    /// Who owns it; nobody when it is shared by all.
    pub owner: Option<OrganizationId>,
    /// Does it take units?
    pub is_ready: bool,
    /// Its labels; all its nodes have them.
    pub labels: BTreeMap<String, String>,
    /// What it is made of.
    pub nodes: Vec<Node>,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique in its cluster.
    pub name: String,
    /// What it has.
    pub capacity: Resources,
    /// What was taken of it by hand.
    pub taken: Resources,
    /// Its own labels; they win over its cluster's.
    pub labels: BTreeMap<String, String>,
}

impl Cluster {
    /// A cluster that is one node.
    pub fn single(
        id: ClusterId,
        owner: Option<OrganizationId>,
        capacity: Resources,
        taken: Resources,
    ) -> Self {
        let (name, labels) = (ONLY_NODE.to_owned(), BTreeMap::new());
        let nodes = vec![Node { name, capacity, taken, labels: labels.clone() }];
        Self { id, owner, is_ready: true, labels, nodes }
    }
}

/// A cluster, inside.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) owner: Option<OrganizationId>,
    pub(super) pool: usize,
    pub(super) nodes: BTreeMap<Arc<str>, usize>,
}

impl World {
    /// Says what a cluster is like now. Nodes that are no longer named are gone.
    pub fn set_cluster(&mut self, cluster: Cluster) {
        let known = self.sites.get(&cluster.id);
        if known.is_some_and(|site| site.owner != cluster.owner) {
            self.remove_cluster(cluster.id);
        }
        let is_new = !self.sites.contains_key(&cluster.id);
        let pool = self.ensure_pool(cluster.owner);
        let site = Site { owner: cluster.owner, pool, nodes: BTreeMap::new() };
        self.sites.entry(cluster.id).or_insert(site);
        if is_new {
            let pinned = self.pinned.get(&cluster.id).cloned().unwrap_or_default();
            for class in pinned {
                self.seat(class);
            }
        }
        self.forget_nodes(&cluster);
        for node in cluster.nodes {
            let mut labels = cluster.labels.clone();
            labels.extend(node.labels.clone());
            self.set_node(cluster.id, pool, cluster.is_ready, &node, labels);
        }
    }

    /// A cluster is gone. What was on it stays known until it is said to be gone, too.
    pub fn remove_cluster(&mut self, id: ClusterId) {
        let Some(site) = self.sites.get(&id) else { return };
        let (pool, slots): (usize, Vec<usize>) =
            (site.pool, site.nodes.values().copied().collect());
        for slot in slots {
            self.remove_node(Spot { pool, slot });
        }
        self.sites.remove(&id);
        for class in self.pinned.get(&id).cloned().unwrap_or_default() {
            self.unseat(class);
        }
    }

    pub(super) fn ensure_pool(&mut self, owner: Option<OrganizationId>) -> usize {
        let pools = &mut self.pools;
        *self.pool_of.entry(owner).or_insert_with(|| {
            pools.push(super::Pool::default());
            pools.len() - 1
        })
    }

    fn forget_nodes(&mut self, cluster: &Cluster) {
        let named: BTreeSet<&str> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
        let Some(site) = self.sites.get_mut(&cluster.id) else { return };
        let pool = site.pool;
        let (kept, gone) = std::mem::take(&mut site.nodes)
            .into_iter()
            .partition(|(name, _)| named.contains(&**name));
        site.nodes = kept;
        for slot in gone.into_values() {
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
        let Some(site) = self.sites.get_mut(&cluster) else { return };
        let known = site.nodes.get(node.name.as_str()).copied();
        let slot = known.unwrap_or_else(|| {
            let name: Arc<str> = node.name.as_str().into();
            let slot = self.pools[pool].add_node(cluster, name.clone());
            site.nodes.insert(name, slot);
            slot
        });
        let here = Spot { pool, slot };
        let inside = &mut self.pools[pool];
        let (has, taken) = (inside.learn(&node.capacity), inside.learn(&node.taken));
        let was = inside.was(slot);
        let mut is_other = inside.set_capacity(slot, &has, &taken) || known.is_none();
        let inner = &mut inside.nodes[slot];
        is_other |= inner.is_open != is_open || inner.labels != labels;
        (inner.labels, inner.is_open) = (labels, is_open);
        inside.arrange(slot);
        self.check_holds(here);
        if known.is_none() {
            self.bring_home(here);
        }
        self.pools[pool].refresh(slot);
        self.touch(here);
        self.check_stale(pool);
        if is_other {
            self.restructured(pool);
            self.check_loss(here, &was);
        }
    }

    /// Room that is kept on a node that its holder can't use is of no use to anybody.
    fn check_holds(&mut self, spot: Spot) {
        let holds = &self.pools[spot.pool].nodes[spot.slot].holds;
        let holders: Vec<usize> = holds.iter().map(|hold| hold.unit).collect();
        for unit in holders {
            let class = self.entries[unit].class;
            let usable = self.classes[class].want(spot.pool).is_some_and(|want| {
                self.pools[spot.pool].nodes[spot.slot].is_open && self.could_fit(class, spot, want)
            });
            if !usable {
                self.back_in_line(unit);
            }
        }
    }

    pub(super) fn check_stale(&mut self, pool: usize) {
        if self.pools[pool].is_stale {
            self.stale.insert(pool);
        }
    }

    /// Those who were said to be on a node before it was known are on it.
    fn bring_home(&mut self, spot: Spot) {
        for unit in self.homeless.remove(&self.place(spot)).unwrap_or_default() {
            let by = match &self.entries[unit].state {
                State::Stopping { by, .. } => Some(*by),
                _ => None,
            };
            let (State::Placed { place, started, .. } | State::Stopping { place, started, .. }) =
                self.entries[unit].state.clone()
            else {
                continue;
            };
            self.settle_on(unit, place, started);
            if let Some(by) = by {
                self.stop(unit, by);
            }
        }
    }

    fn remove_node(&mut self, spot: Spot) {
        let place = self.place(spot);
        let node = &self.pools[spot.pool].nodes[spot.slot];
        let waiting: Vec<usize> = node.holds.iter().map(|hold| hold.unit).collect();
        let stopping = node.leaving.iter().map(|(unit, _)| *unit);
        let on: Vec<usize> = node.residents.iter().map(|r| r.unit).chain(stopping).collect();
        for unit in waiting {
            self.back_in_line(unit);
        }
        for unit in on {
            self.leave_home(unit, &place);
        }
        let was = self.pools[spot.pool].was(spot.slot);
        self.pools[spot.pool].remove_node(spot.slot);
        self.agenda.forget(spot);
        self.check_stale(spot.pool);
        self.restructured(spot.pool);
        self.check_loss(spot, &was);
    }

    fn leave_home(&mut self, unit: usize, place: &Place) {
        self.vacate(unit);
        if let State::Placed { spot, .. } | State::Stopping { spot, .. } =
            &mut self.entries[unit].state
        {
            *spot = None;
        }
        self.homeless.entry(place.clone()).or_default().insert(unit);
    }
}
