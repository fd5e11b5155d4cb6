//! The rules of the scheduler, as examples and as properties.

mod examples;
mod history;
mod machines;
mod oracle;
mod queries;
mod reservations;
mod shares;
mod starvation;

use std::collections::BTreeMap;

use super::preempt::Loss;
use super::*;
use crate::{Quantity, Resources};

fn xid(n: u32) -> Xid {
    Xid::new(0, [0; 5], n)
}

fn organization(n: u32) -> OrganizationId {
    OrganizationId(xid(n))
}

fn cluster_id(n: u32) -> ClusterId {
    ClusterId(xid(n))
}

fn id(n: u32) -> UnitId {
    UnitId { owner: xid(n), replica: 0 }
}

/// A unit of the first organization that requests CPU on any cluster.
fn unit(n: u32, cpu: i64, priority: i64) -> Unit {
    Unit {
        id: id(n),
        organization: organization(1),
        priority,
        since: Time(n.into()),
        request: cpus(cpu),
        target: Target::Any,
        selector: BTreeMap::new(),
        is_spread: false,
        is_container: false,
        run_for: None,
        ends_at: None,
    }
}

fn cpus(n: i64) -> Resources {
    Resources::from([("cpu", n)])
}

/// A shared cluster of one node.
fn cluster(n: u32, cpu: i64) -> Cluster {
    Cluster::single(cluster_id(n), None, cpus(cpu), Resources::default())
}

fn at(n: u32) -> Place {
    Place { cluster: cluster_id(n), node: "main".into() }
}

fn world(clusters: &[Cluster]) -> World {
    let settings = Settings { container_limits: Resources::clone, ..Settings::default() };
    let mut world = World::new(settings);
    for cluster in clusters {
        world.set_cluster(cluster.clone());
    }
    world
}

const ENOUGH: usize = 100_000;

/// All units of a world with their states.
fn units_of(world: &World) -> Vec<(Unit, State)> {
    let as_reported = |entry: &Entry| {
        let key = &world.classes[entry.class].key;
        let unit = Unit {
            id: entry.id,
            organization: key.organization,
            priority: entry.priority,
            since: entry.since,
            request: key.request.clone(),
            target: key.target,
            selector: key.selector.clone(),
            is_spread: key.spread_owner.is_some(),
            is_container: key.is_container,
            run_for: entry.run_for,
            ends_at: entry.ends_at,
        };
        (unit, entry.state.clone())
    };
    let mut all: Vec<_> = world.index.values().map(|&at| as_reported(&world.entries[at])).collect();
    all.sort_by_key(|(unit, _)| unit.id);
    all
}

impl Unit {
    fn rank(&self) -> Rank {
        Rank { priority: std::cmp::Reverse(self.priority), since: self.since, id: self.id }
    }
}
