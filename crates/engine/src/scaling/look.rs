//! What a pool looks like now: from rows, and from what placement knows of those who wait.

use std::collections::BTreeMap;
use std::time::Duration;

use model::cluster::{Cluster, Status};
use model::scaling::{Demand, MOST_FAILURES, Pool, Seen, SeenCluster, SeenNode, Waiting, share};
use model::world::Line;
use model::{ClusterId, InstanceId, Resources, Time};
use store::deployment::reserving::{self, Reserved};
use store::pool::{self, State};
use store::{Db, Read, Scope, instance};

use super::holds_room;
use crate::placement::Outlook;
use crate::rules::Rules;

/// So long somebody must have waited before it is believed: whoever places may be just about to.
pub(super) const SETTLED: Duration = Duration::from_millis(500);

/// A pool, as it is now.
#[derive(Debug, Clone)]
pub struct Look {
    /// What may grow.
    pub pool: Pool,
    /// What it remembers.
    pub state: State,
    /// Its clusters.
    pub clusters: Vec<Cluster>,
    /// What its decision is made from.
    pub seen: Seen,
    /// Since when each of its clusters is empty.
    pub idle: BTreeMap<ClusterId, Time>,
    /// When this was so.
    pub at: Time,
    /// When somebody who has just come to wait has waited long enough.
    pub unsettled_until: Option<Time>,
    held: Vec<Reserved>,
}

/// Looks at a pool; one that is not in force among others is what is left of it. Where no pools are in
/// force at all there is nothing to look at: who forgot the file wants nothing to go.
pub async fn look(
    db: &Db,
    rules: &Rules,
    outlook: &Outlook,
    name: &str,
) -> store::Result<Option<Look>> {
    let pools = rules.pools();
    if pools.is_empty() {
        return Ok(None);
    }
    let pool = pools.iter().find(|pool| pool.name == name).cloned();
    let pool = pool.unwrap_or_else(|| Pool::retired(name));
    let lines = outlook.lines().await?;
    let (mut read, at) = (db.read().await?, db.now());
    let state = pool::get(&mut read, name, at).await?;
    let clusters = pool::clusters(&mut read, name).await?;
    let held = reserving::of_pool(&mut read, name).await?;
    let (demand, unsettled_until) = demand(&mut read, lines, at).await?;
    let counts = pool::counts(&mut read).await?;
    let may_take = |other: &Pool| may_take(other, name, &counts);
    let waiting = share(&pools, name, &demand, &rules.catalog(), may_take);
    let idle = idle(&state, &clusters, &held, at);
    let seen = seen(&state, &clusters, &held, &idle, waiting);
    Ok(Some(Look { pool, state, clusters, seen, idle, at, unsettled_until, held }))
}

/// Can somebody who waits count on this pool: does something come there, or may it?
fn may_take(pool: &Pool, asking: &str, counts: &[(String, Status, i64)]) -> bool {
    let of = |is: &dyn Fn(Status) -> bool| -> i64 {
        let own = counts.iter().filter(|(name, status, _)| *name == pool.name && is(*status));
        own.map(|(_, _, count)| count).sum()
    };
    let arriving = of(&|status| {
        use Status::{Accepted, Provisioned, Provisioning, WaitingForAgent};
        matches!(status, Accepted | Provisioning | Provisioned | WaitingForAgent)
    });
    let there = of(&|status| status != Status::Failed);
    let failed = of(&|status| status == Status::Failed);
    let can_grow = there < i64::from(pool.at_most)
        && usize::try_from(failed).is_ok_and(|failed| failed < MOST_FAILURES);
    (arriving > 0 || can_grow) && (!pool.dry_run || pool.name == asking)
}

/// Those who wait, with what instances need of whatever cluster; and when those can be believed who
/// have just come.
async fn demand(
    read: &mut Read,
    lines: Vec<(Line, Option<InstanceId>)>,
    now: Time,
) -> store::Result<(Vec<Demand>, Option<Time>)> {
    let (mut all, mut unsettled) = (Vec::new(), None);
    for (line, id) in lines {
        let settled = line.since + SETTLED;
        if now < settled {
            unsettled = unsettled.into_iter().chain([settled]).min();
            continue;
        }
        let mut one = Demand {
            request: line.request,
            selector: line.selector,
            instance: None,
            count: line.count,
            since: line.since,
        };
        if let Some(id) = id {
            let of = match instance::get(read, Scope::All, id).await {
                Err(store::Error::NotFound { .. }) => continue,
                other => other?,
            };
            one.request = of.detail.resources;
            one.instance = Some((of.kind, of.instance_type, of.detail.units));
        }
        all.push(one);
    }
    Ok((all, unsettled))
}

/// Since when each ready cluster has nothing real on it.
fn idle(
    state: &State,
    clusters: &[Cluster],
    held: &[Reserved],
    now: Time,
) -> BTreeMap<ClusterId, Time> {
    let empty = clusters.iter().filter(|one| one.status == Status::Ready && is_empty(one, held));
    empty.map(|one| (one.id, state.idle.get(&one.id).copied().unwrap_or(now))).collect()
}

fn is_empty(cluster: &Cluster, held: &[Reserved]) -> bool {
    let own = held.iter().filter(|one| one.cluster == cluster.id).count();
    let is_used = cluster.nodes.iter().any(|node| {
        let reserved = reserved_on(cluster.id, &node.name, held);
        node.capacity.iter().any(|(kind, capacity)| capacity.used > reserved.get(kind))
    });
    usize::try_from(cluster.deployments).is_ok_and(|all| all <= own) && !is_used
}

fn reserved_on(cluster: ClusterId, node: &str, held: &[Reserved]) -> Resources {
    let mut sum = Resources::default();
    let here = |one: &&Reserved| one.cluster == cluster && one.node.as_deref() == Some(node);
    held.iter().filter(here).for_each(|one| sum.add(&one.room));
    sum
}

fn seen(
    state: &State,
    clusters: &[Cluster],
    held: &[Reserved],
    idle: &BTreeMap<ClusterId, Time>,
    waiting: Vec<Waiting>,
) -> Seen {
    let nodes = |cluster: &Cluster| {
        // What is being drained has no room to give.
        let is_open = cluster.draining_at.is_none();
        let nodes = cluster.nodes.iter().map(|node| SeenNode {
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
    let clusters = clusters.iter().map(|cluster| SeenCluster {
        id: cluster.id,
        name: cluster.name.clone(),
        status: cluster.status,
        nodes: nodes(cluster),
        empty_since: idle.get(&cluster.id).copied(),
        since: cluster.status_since,
    });
    Seen { clusters: clusters.collect(), waiting, memory: state.memory.clone() }
}

impl Look {
    /// The clusters on which not as much room is held as shall be, or more.
    pub(super) fn wanting(&self) -> Vec<ClusterId> {
        let own = self.clusters.iter().filter(|cluster| holds_room(cluster));
        own.map(|cluster| cluster.id).filter(|&id| !self.is_as_wanted(id)).collect()
    }

    fn is_as_wanted(&self, id: ClusterId) -> bool {
        let held = || self.held.iter().filter(|one| one.cluster == id);
        let hosts = &self.pool.hosts;
        let total: usize = hosts.iter().map(|host| host.reserved as usize).sum();
        let is_enough = |host: &model::scaling::Host| {
            let own = held().filter(|one| one.for_type == host.name() && one.room == host.room);
            own.count() == host.reserved as usize
        };
        held().count() == total && hosts.iter().all(is_enough)
    }
}
