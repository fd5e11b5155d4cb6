//! Observes a pool: from rows, and from the pending replicas of placement.

use std::collections::BTreeMap;
use std::time::Duration;

use model::cluster::{Cluster, Status};
use model::scaling::{
    Demand, MAX_FAILURES, Observed, ObservedCluster, ObservedNode, PendingWorkloads, Pool, share,
};
use model::world::PendingGroup;
use model::{ClusterId, InstanceId, Resources, Time};
use store::deployment::reserving::{self, Reserved};
use store::pool::{self, State};
use store::{Db, Read, Scope, instance};

use super::takes_reservations;
use crate::placement::PlacementView;
use crate::rules::RulesReader;

/// Minimum age of demand: placement may be about to place a newer replica.
pub(super) const SETTLED: Duration = Duration::from_millis(500);

/// Observed state of a pool.
#[derive(Debug, Clone)]
pub struct PoolObservation {
    /// The pool's configuration.
    pub pool: Pool,
    /// The pool's persisted state.
    pub state: State,
    /// Its clusters.
    pub clusters: Vec<Cluster>,
    /// Input of the scaling decision.
    pub input: Observed,
    /// Since when each empty cluster is empty.
    pub idle: BTreeMap<ClusterId, Time>,
    /// When this was observed.
    pub at: Time,
    /// When the newest demand is old enough to count.
    pub unsettled_until: Option<Time>,
    held: Vec<Reserved>,
}

/// Observes a pool; a pool that is no longer configured counts as retired. `None` if no pools are
/// configured at all: a missing file must not delete clusters.
pub async fn observe(
    db: &Db,
    rules: &RulesReader,
    placement_view: &PlacementView,
    name: &str,
) -> store::Result<Option<PoolObservation>> {
    let pools = rules.pools();
    if pools.is_empty() {
        return Ok(None);
    }
    let pool = pools.iter().find(|pool| pool.name == name).cloned();
    let pool = pool.unwrap_or_else(|| Pool::retired(name));
    let lines = placement_view.queues().await?;
    let (mut read, at) = (db.read().await?, db.now());
    let state = pool::get(&mut read, name, at).await?;
    let clusters = pool::clusters(&mut read, name).await?;
    let held = reserving::of_pool(&mut read, name).await?;
    let (demand, unsettled_until) = demand(&mut read, lines, at).await?;
    let counts = pool::counts(&mut read).await?;
    let may_take = |other: &Pool| may_take(other, name, &counts);
    let waiting = share(&pools, name, &demand, &rules.catalog(), may_take);
    let idle = idle(&state, &clusters, &held, at);
    let seen = input(&state, &clusters, &held, &idle, waiting);
    Ok(Some(PoolObservation {
        pool,
        state,
        clusters,
        input: seen,
        idle,
        at,
        unsettled_until,
        held,
    }))
}

/// Whether demand can rely on this pool: a cluster is being created there, or may be.
fn may_take(pool: &Pool, for_pool: &str, counts: &[(String, Status, i64)]) -> bool {
    let count = |is: &dyn Fn(Status) -> bool| -> i64 {
        let own = counts.iter().filter(|(name, status, _)| *name == pool.name && is(*status));
        own.map(|(_, _, count)| count).sum()
    };
    let creating = count(&|status| {
        use Status::{Accepted, Provisioned, Provisioning, WaitingForAgent};
        matches!(status, Accepted | Provisioning | Provisioned | WaitingForAgent)
    });
    let existing = count(&|status| status != Status::Failed);
    let failed = count(&|status| status == Status::Failed);
    let can_grow = existing < i64::from(pool.at_most)
        && usize::try_from(failed).is_ok_and(|failed| failed < MAX_FAILURES);
    (creating > 0 || can_grow) && (!pool.dry_run || pool.name == for_pool)
}

/// Demand from pending replicas and instances; and when newer demand will count.
async fn demand(
    read: &mut Read,
    lines: Vec<(PendingGroup, Option<InstanceId>)>,
    now: Time,
) -> store::Result<(Vec<Demand>, Option<Time>)> {
    let (mut all, mut unsettled) = (Vec::new(), None);
    for (line, id) in lines {
        let settled = line.since + SETTLED;
        if now < settled {
            unsettled = unsettled.into_iter().chain([settled]).min();
            continue;
        }
        let mut pending = Demand {
            request: line.request,
            selector: line.selector,
            instance: None,
            count: line.count,
            since: line.since,
        };
        if let Some(id) = id {
            let found = match instance::get(read, Scope::All, id).await {
                Err(store::Error::NotFound { .. }) => continue,
                other => other?,
            };
            pending.request = found.detail.resources;
            pending.instance = Some((found.kind, found.instance_type, found.detail.units));
        }
        all.push(pending);
    }
    Ok((all, unsettled))
}

/// Since when each ready cluster has only reservations on it.
fn idle(
    state: &State,
    clusters: &[Cluster],
    held: &[Reserved],
    now: Time,
) -> BTreeMap<ClusterId, Time> {
    let empty = clusters.iter().filter(|c| c.status == Status::Ready && is_empty(c, held));
    empty.map(|c| (c.id, state.idle.get(&c.id).copied().unwrap_or(now))).collect()
}

fn is_empty(cluster: &Cluster, held: &[Reserved]) -> bool {
    let own = held.iter().filter(|r| r.cluster == cluster.id).count();
    let is_used = cluster.nodes.iter().any(|node| {
        let reserved = reserved_on(cluster.id, &node.name, held);
        node.capacity.iter().any(|(kind, capacity)| capacity.used > reserved.get(kind))
    });
    usize::try_from(cluster.deployments).is_ok_and(|all| all <= own) && !is_used
}

fn reserved_on(cluster: ClusterId, node: &str, held: &[Reserved]) -> Resources {
    let mut sum = Resources::default();
    let here = |r: &&Reserved| r.cluster == cluster && r.node.as_deref() == Some(node);
    held.iter().filter(here).for_each(|r| sum.add(&r.room));
    sum
}

fn input(
    state: &State,
    clusters: &[Cluster],
    held: &[Reserved],
    idle: &BTreeMap<ClusterId, Time>,
    waiting: Vec<PendingWorkloads>,
) -> Observed {
    let nodes = |cluster: &Cluster| {
        // A draining cluster has no free capacity.
        let is_open = cluster.draining_at.is_none();
        let nodes = cluster.nodes.iter().map(|node| ObservedNode {
            total: node
                .capacity
                .iter()
                .map(|(kind, c)| (kind.clone(), if is_open { c.total } else { c.used }))
                .collect(),
            used: node.capacity.iter().map(|(kind, c)| (kind.clone(), c.used)).collect(),
            reserved: reserved_on(cluster.id, &node.name, held),
        });
        nodes.collect()
    };
    let clusters = clusters.iter().map(|cluster| ObservedCluster {
        id: cluster.id,
        name: cluster.name.clone(),
        status: cluster.status,
        nodes: nodes(cluster),
        empty_since: idle.get(&cluster.id).copied(),
        since: cluster.status_since,
    });
    Observed { clusters: clusters.collect(), waiting, memory: state.memory.clone() }
}

impl PoolObservation {
    /// The clusters whose reservations differ from the pool's configuration.
    pub(super) fn clusters_to_reserve(&self) -> Vec<ClusterId> {
        let own = self.clusters.iter().filter(|cluster| takes_reservations(cluster));
        own.map(|cluster| cluster.id).filter(|&id| !self.is_reserved_as_configured(id)).collect()
    }

    fn is_reserved_as_configured(&self, id: ClusterId) -> bool {
        let held = || self.held.iter().filter(|r| r.cluster == id);
        let hosts = &self.pool.hosts;
        let total: usize = hosts.iter().map(|host| host.reserved as usize).sum();
        let is_enough = |host: &model::scaling::Host| {
            let own = held().filter(|r| r.for_type == host.name() && r.room == host.room);
            own.count() == host.reserved as usize
        };
        held().count() == total && hosts.iter().all(is_enough)
    }
}
