//! Clusters. An organization sees its own and the shared ones, and changes only its own.

mod drain;
pub mod hosting;

use std::collections::BTreeMap;
use std::time::Duration;

use model::cluster::{
    AgentHeartbeat, Capacity, Cluster, Hosting, NewCluster, NewNode, Node, Reason, Settings, Status,
};
use model::event::Kind;
use model::organization::quota::Subject as Counted;
use model::reason::StatusReason as _;
use model::work::{Key, Lane};
use model::{ClusterId, OrganizationId, Place, Quantity, Resources, Time};

use serde::Serialize;

use crate::db::{Json, Param, Row, Select, Value, json, params, readable, sql};
use crate::deployment::{eviction, reserving};
use crate::status::{self, Lifecycle, status_row};
use crate::subject::{self, Id, Subject, by_id};
use crate::{Error, Read, Result, Scope, Tx, capacity, organization, organization_quota, work};

pub use crate::status::{explain, save, transition};
pub use crate::subject::{count, list};
pub use drain::{drain, undrain};

by_id!(ClusterId: get(Read));

/// The worker that reconciles clusters.
pub const WORKER: &str = "cluster";

macro_rules! columns {
    () => {
        "id, organization_id, name, provider, settings, cloud_provider, region, labels, nodes, status, \
         status_reason, status_since, draining_at, is_forced, heard_at, agent_version, agent_runtime, \
         unreachable_at, foreign_id, hosting, pool, deployments, generation, created_by, created_at, \
         updated_at, node, kind, total, used, manual"
    };
}
use columns;

impl Subject for Cluster {
    type Id = ClusterId;
    const KIND: Kind = Kind::Cluster;
    const TABLE: &'static str = "cluster";
    const COLUMNS: &'static str = columns!();
    const VISIBLE: &'static str = "(organization_id = ? OR organization_id IS NULL)";
    const JOIN: &'static str =
        ") AS one LEFT JOIN capacity ON cluster_id = id ORDER BY id, node, kind";

    fn from_row(row: Row) -> Result<Self> {
        let (mut cluster, labels, row) = read_cluster(row)?;
        add_capacity(&mut cluster, &labels, row)?;
        Ok(cluster)
    }

    /// The rows of a cluster are adjacent, one per node and resource type.
    fn from_rows(rows: Vec<Row>) -> Vec<Self> {
        let mut clusters: Vec<Cluster> = Vec::new();
        for (cluster, labels, row) in readable(rows, read_cluster) {
            if clusters.last().is_none_or(|last| last.id != cluster.id) {
                clusters.push(cluster);
            }
            if let Some(cluster) = clusters.last_mut()
                && let Err(error) = add_capacity(cluster, &labels, row)
            {
                tracing::error!(cluster = %cluster.id, %error, "unreadable row skipped");
            }
        }
        clusters
    }
}

impl Id for ClusterId {
    type Subject = Cluster;
}

impl Lifecycle for Cluster {
    status_row!(Status, Reason);
    const WORKER: &'static str = WORKER;
    const RESTLESS: &'static str = "(status <> 'ready' OR provider <> 'local')";
    const EXPLAINED: &'static str = "explained";

    fn columns(&self) -> Vec<(&'static str, Value<'_>)> {
        vec![
            ("name", self.name.value()),
            ("labels", self.labels.value()),
            ("settings", json(&self.settings)),
            ("draining_at", self.draining_at.value()),
            ("unreachable_at", self.unreachable_at.value()),
            ("is_forced", self.is_forced.value()),
            ("generation", self.generation.value()),
        ]
    }

    fn event_data(&self) -> impl Serialize + Send + Sync {
        self
    }

    async fn entered(&mut self, tx: &mut Tx) -> Result<()> {
        self.unreachable_at = (self.status == Status::Unreachable).then_some(tx.now());
        Ok(())
    }

    async fn relock(&self, tx: &mut Tx) -> Result<Self> {
        lock_and_get(tx, self.id).await
    }

    fn is_unchanged(&self, seen: &Self) -> bool {
        self.status == seen.status
            && self.status_since == seen.status_since
            && self.unreachable_at == seen.unreachable_at
            && self.draining_at == seen.draining_at
    }
}

/// Filter for lists.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Status.
    pub status: Option<Status>,
    /// Name.
    pub name: Option<String>,
    /// Only the organization's own clusters, without shared ones and those being deleted.
    pub only_own: bool,
}

/// Creates a cluster in status `accepted`; its worker takes over.
pub async fn create(
    tx: &mut Tx,
    organization: Option<OrganizationId>,
    new: &NewCluster,
) -> Result<Cluster> {
    let id = tx.id();
    create_with_id(tx, id, organization, new).await
}

/// Creates a cluster with a given id, because secrets are already encrypted for it.
pub async fn create_with_id(
    tx: &mut Tx,
    id: ClusterId,
    organization: Option<OrganizationId>,
    new: &NewCluster,
) -> Result<Cluster> {
    let (now, by) = (tx.now(), tx.actor().to_string());
    let (nodes, reason) = (new.all_nodes(), Reason::default());
    tx.run(
        sql!(
            "INSERT INTO cluster (id, organization_id, name, provider, settings, cloud_provider, ",
            "region, labels, nodes, status, status_reason, status_since, created_by, created_at, ",
            "updated_at, reason_code) VALUES ",
            "($1, $2, $3, $4, $5, $6, $7, $8, $9, 'accepted', $10, $12, $11, $12, $12, $13)"
        ),
        params![
            id,
            organization,
            new.name,
            new.provider,
            Json(&new.settings),
            new.cloud_provider,
            new.region,
            new.labels,
            Json(&labels_of(&nodes)),
            reason,
            by,
            now,
            reason.code()
        ],
    )
    .await?;
    organization::ensure_exists(tx, organization).await?;
    capacity::set_nodes(tx, id, &nodes).await?;
    if let Some(owner) = organization {
        organization_quota::charge(tx, owner, Counted::Clusters, Quantity::whole(1));
    }
    record_event(tx, id, "created").await
}

fn labels_of(nodes: &[NewNode]) -> BTreeMap<&str, &BTreeMap<String, String>> {
    nodes.iter().map(|node| (node.name.as_str(), &node.labels)).collect()
}

/// A cluster that the caller may change.
pub async fn get_own(read: &mut Read, scope: Scope, id: ClusterId) -> Result<Cluster> {
    let cluster = get(read, scope, id).await?;
    if scope.organization().is_some() && cluster.organization_id != scope.organization() {
        return Err(Error::Conflict(format!(
            "cluster {} is shared; only the platform administrator can change it",
            cluster.name
        )));
    }
    Ok(cluster)
}

/// The shared cluster with that name.
pub async fn find_shared(read: &mut Read, name: &str) -> Result<Option<Cluster>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM cluster LEFT JOIN capacity ON cluster_id = id ",
        "WHERE organization_id IS NULL AND name = $1 AND deleted_at IS NULL ORDER BY id, node, kind"
    );
    Ok(Cluster::from_rows(read.all(sql, params![name]).await?).into_iter().next())
}

/// The clusters of a pool.
pub(crate) async fn of_pool(read: &mut Read, pool: &str) -> Result<Vec<Cluster>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM cluster LEFT JOIN capacity ON cluster_id = id ",
        "WHERE pool = $1 AND deleted_at IS NULL ORDER BY id, node, kind"
    );
    Ok(Cluster::from_rows(read.all(sql, params![pool]).await?))
}

impl subject::Filter for Filter {
    type Subject = Cluster;

    fn restrict<'a>(&'a self, select: Select<'a>, own: Option<&'a OrganizationId>) -> Select<'a> {
        let only = "organization_id = ? AND status NOT IN ('deprovisioning', 'cleanup')";
        select
            .and(only, own.filter(|_| self.only_own))
            .and("status = ?", self.status.as_ref())
            .and("name = ?", self.name.as_ref())
    }
}

/// Changes the name and labels of a cluster.
pub async fn set_metadata(
    tx: &mut Tx,
    id: ClusterId,
    name: Option<&str>,
    labels: Option<&BTreeMap<String, String>>,
) -> Result<Cluster> {
    let mut now = lock_and_get(tx, id).await?;
    now.name = name.map_or(now.name, str::to_owned);
    now.labels = labels.cloned().unwrap_or(now.labels);
    now.generation += 1;
    save(tx, &mut now, "updated").await?;
    Ok(now)
}

/// Sets the totals of a cluster with one node. Pending replicas may fit then.
pub async fn set_total(tx: &mut Tx, id: ClusterId, total: &Resources) -> Result<Cluster> {
    let now = lock_and_get(tx, id).await?;
    let [node] = now.nodes.as_slice() else {
        return Err(Error::Conflict(format!(
            "cluster {} has several nodes: set the capacity of each node",
            now.name
        )));
    };
    let place = Place { cluster: id, node: node.name.as_str().into() };
    increment_generation(tx, id).await?;
    capacity::set_total(tx, &place, total).await?;
    record_event(tx, id, "updated").await
}

/// Sets the nodes of a cluster. Nodes that are not named are removed, unless they are in use.
pub async fn set_nodes(tx: &mut Tx, id: ClusterId, nodes: &[NewNode]) -> Result<Cluster> {
    lock(tx, id).await?;
    let sql = sql!("UPDATE cluster SET nodes = $2 WHERE id = $1");
    tx.run(sql, params![id, Json(&labels_of(nodes))]).await?;
    increment_generation(tx, id).await?;
    capacity::set_nodes(tx, id, nodes).await?;
    record_event(tx, id, "updated").await
}

async fn increment_generation(tx: &mut Tx, id: ClusterId) -> Result<()> {
    let now = tx.now();
    let sql = sql!("UPDATE cluster SET generation = generation + 1, updated_at = $2 WHERE id = $1");
    tx.run(sql, params![id, now]).await.map(drop)
}

/// Reserves capacity manually: all of it or none.
pub async fn reserve(tx: &mut Tx, id: ClusterId, request: &Resources) -> Result<Cluster> {
    lock(tx, id).await?;
    capacity::reserve_manually(tx, id, request).await?;
    record_event(tx, id, "capacity_taken").await
}

/// Releases manually reserved capacity: all of it or none.
pub async fn release(tx: &mut Tx, id: ClusterId, request: &Resources) -> Result<Cluster> {
    lock(tx, id).await?;
    capacity::release_manual(tx, id, request).await?;
    record_event(tx, id, "capacity_given_back").await
}

/// Records that capacity was released other than by a deployment's end.
pub(crate) async fn record_capacity_release(tx: &mut Tx, id: ClusterId) -> Result<()> {
    record_event(tx, id, "capacity_freed").await.map(drop)
}

/// Records that the capacity of the cluster's machine has changed.
pub async fn announce_machine(tx: &mut Tx, id: ClusterId) -> Result<()> {
    record_event(tx, id, "machine_changed").await.map(drop)
}

/// Records a heartbeat of a cluster's agent, unless the last one is less than `apart` old and the
/// cluster does not wait for it. Appends no event: the worker is woken if the cluster waits for its
/// agent; otherwise it reads the heartbeat when it is due.
pub async fn record_heartbeat(
    tx: &mut Tx,
    id: ClusterId,
    version: &str,
    runtime: &str,
    apart: Duration,
) -> Result<()> {
    let now = tx.now();
    let heard = tx
        .first(
            sql!(
                "UPDATE cluster SET heard_at = $2, agent_version = $3, agent_runtime = $4 ",
                "WHERE id = $1 AND deleted_at IS NULL AND (heard_at IS NULL OR heard_at <= $5 ",
                "OR status IN ('waiting_for_agent', 'unreachable')) RETURNING status"
            ),
            params![id, now, version, runtime, now - apart],
        )
        .await?;
    let status: Option<Status> = heard.map(|mut row| row.take()).transpose()?;
    if matches!(status, Some(Status::WaitingForAgent | Status::Unreachable)) {
        work::wake(tx, Lane::Priority, Key::new(WORKER, id));
    }
    Ok(())
}

/// Stores what a provider reports about the cluster that it created.
pub async fn set_provisioned(
    tx: &mut Tx,
    id: ClusterId,
    foreign_id: Option<&str>,
    hosting: &Hosting,
) -> Result<()> {
    let sql = sql!("UPDATE cluster SET hosting = $2 WHERE id = $1");
    tx.run(sql, params![id, Json(hosting)]).await?;
    // Two clusters can be parts of one external cluster: only the first gets its id.
    let sql = sql!(
        "UPDATE cluster SET foreign_id = $2 WHERE id = $1 AND NOT EXISTS ",
        "(SELECT 1 FROM cluster WHERE foreign_id = $2 AND deleted_at IS NULL)"
    );
    match foreign_id {
        Some(name) => tx.run(sql, params![id, name]).await.map(drop),
        None => Ok(()),
    }
}

/// Changes the provider's settings. The worker applies them.
pub async fn set_settings(tx: &mut Tx, id: ClusterId, settings: &Settings) -> Result<Cluster> {
    let mut now = lock_and_get(tx, id).await?;
    now.settings = settings.clone();
    now.generation += 1;
    save(tx, &mut now, "updated").await?;
    Ok(now)
}

/// Retries a cluster that failed.
pub async fn retry(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    let mut now = lock_and_get(tx, cluster.id).await?;
    if now.status != Status::Failed {
        return Err(Error::Conflict(format!(
            "cluster {} is {}; only a failed cluster can be retried",
            now.name, now.status
        )));
    }
    transition(tx, &mut now, Status::Accepted, Reason::RetryRequested).await?;
    Ok(now)
}

/// Requests the cancellation of the provider's operation: the cluster fails, and can be retried.
pub async fn cancel(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    if !cluster.provider.provisions() || !cluster.status.is_provisioning() {
        return Err(Error::Conflict(format!(
            "cluster {} is {}; only a cluster that is being provisioned can be cancelled",
            cluster.name, cluster.status
        )));
    }
    crate::operation::set_cancelled(tx, cluster.id, true).await?;
    record_event(tx, cluster.id, "cancelled").await
}

/// Requests the deletion of a cluster; refused while deployments exist. Later ones can't be added.
///
/// Leftovers of an unreachable cluster don't block it: its agent may never return. A forced
/// deletion succeeds even if the provider can't destroy its objects.
pub async fn request_delete(tx: &mut Tx, cluster: &Cluster, is_forced: bool) -> Result<Cluster> {
    let mut now = lock_and_get(tx, cluster.id).await?;
    if now.status.is_deleting() {
        if is_forced {
            now.is_forced = true;
            save(tx, &mut now, "forced").await?;
        }
        return Ok(now);
    }
    if now.pool.is_some() {
        reserving::release_all(tx, now.id).await?;
    }
    if now.status == Status::Unreachable {
        eviction::delete_leftovers(tx, now.id).await?;
        tx.flush_counts().await?;
    }
    // From here on no deployment can be added: the row is locked.
    let sql = sql!("UPDATE cluster SET updated_at = updated_at WHERE id = $1 AND deployments = 0");
    let is_empty = tx.run(sql, params![now.id]).await? > 0;
    now = get(tx, Scope::All, now.id).await?;
    if !is_empty {
        return Err(Error::Conflict(format!(
            "cluster {} still has deployments ({}); drain it or delete them first",
            now.name, now.deployments
        )));
    }
    now.is_forced |= is_forced;
    transition(tx, &mut now, Status::Deprovisioning, Reason::DeletionRequested { by: None })
        .await?;
    Ok(now)
}

/// Deletes a cluster; its history stays.
pub async fn delete(tx: &mut Tx, cluster: &Cluster) -> Result<()> {
    let now: Time = tx.now();
    let sql = sql!("UPDATE cluster SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL");
    if tx.run(sql, params![cluster.id, now]).await? == 0 {
        return Err(Error::not_found("cluster", cluster.id));
    }
    if let Some(owner) = cluster.organization_id {
        organization_quota::release(tx, owner, Counted::Clusters, Quantity::whole(1));
    }
    crate::operation::secret::delete_all(tx, cluster.id).await?;
    status::append(tx, cluster, "deleted").await
}

/// Counts one more deployment, if the cluster accepts deployments and `limit` is not exceeded.
pub(crate) async fn add_deployment(tx: &mut Tx, id: ClusterId, limit: i64) -> Result<()> {
    let added = tx
        .run(
            sql!(
                "UPDATE cluster SET deployments = deployments + 1 WHERE id = $1 AND deployments < $2 ",
                "AND deleted_at IS NULL AND status NOT IN ('deprovisioning', 'cleanup')"
            ),
            params![id, limit],
        )
        .await?;
    if added == 1 {
        return Ok(());
    }
    if get(tx, Scope::All, id).await?.status.is_deleting() {
        return Err(Error::Conflict(format!("cluster {id} is being deleted")));
    }
    Err(Error::Limit { limit, what: "deployments per cluster" })
}

/// Changes the number of deployments; increases only while the cluster accepts deployments.
pub(crate) async fn add_to_count(tx: &mut Tx, id: ClusterId, change: i64) -> Result<()> {
    let counted = tx
        .run(
            sql!(
                "UPDATE cluster SET deployments = deployments + $2 WHERE id = $1 AND ",
                "($2 <= 0 OR (deleted_at IS NULL AND status NOT IN ('deprovisioning', 'cleanup')))"
            ),
            params![id, change],
        )
        .await?;
    if counted == 0 {
        return Err(Error::Conflict(format!("cluster {id} is being deleted")));
    }
    Ok(())
}

/// Locks the cluster's capacity until the end of the transaction.
///
/// Capacity changes acquire locks in one global order, to avoid deadlocks: this one (of several
/// clusters, by id), deployments by id, capacity; and at the commit, when no other lock is waited
/// for, deployment counters (`Tx::count`), quota usage (`organization_quota::flush`) and the work queue.
pub async fn lock(tx: &mut Tx, id: ClusterId) -> Result<()> {
    tx.lock(&format!("cluster/{id}")).await
}

/// Locks the cluster and reads it.
pub(crate) async fn lock_and_get(tx: &mut Tx, id: ClusterId) -> Result<Cluster> {
    lock(tx, id).await?;
    get(tx, Scope::All, id).await
}

/// Records that a cluster has a new agent token.
pub(crate) async fn record_token(tx: &mut Tx, id: ClusterId) -> Result<()> {
    record_event(tx, id, "token_made").await.map(drop)
}

/// Appends the cluster's state to the event log and wakes its worker.
pub(crate) async fn record_event(tx: &mut Tx, id: ClusterId, change: &str) -> Result<Cluster> {
    let cluster = get(tx, Scope::All, id).await?;
    status::record_event(tx, &cluster, change).await?;
    Ok(cluster)
}

/// Adds the node and resource type in the rest of a row, if any.
fn add_capacity(cluster: &mut Cluster, labels: &Labels, mut row: Row) -> Result<()> {
    let Some(node) = row.take::<Option<String>>()? else { return Ok(()) };
    let kind: String = row.take()?;
    let capacity = Capacity { total: row.take()?, used: row.take()?, manual: row.take()? };
    if cluster.nodes.last().is_none_or(|last| last.name != node) {
        let labels = labels.get(&node).cloned().unwrap_or_default();
        cluster.nodes.push(Node { name: node, labels, capacity: BTreeMap::new() });
    }
    let sum = cluster.capacity.entry(kind.clone()).or_default();
    sum.total = sum.total.plus(capacity.total);
    sum.used = sum.used.plus(capacity.used);
    sum.manual = sum.manual.plus(capacity.manual);
    if let Some(node) = cluster.nodes.last_mut() {
        node.capacity.insert(kind, capacity);
    }
    Ok(())
}

/// Labels by node name.
type Labels = BTreeMap<String, BTreeMap<String, String>>;

fn read_cluster(mut row: Row) -> Result<(Cluster, Labels, Row)> {
    let (id, organization_id, name) = (row.take()?, row.take()?, row.take()?);
    let (provider, settings) = (row.take()?, row.take::<Json<_>>()?.0);
    let (cloud_provider, region) = (row.take()?, row.take()?);
    let (labels, nodes) = (row.take::<Json<_>>()?.0, row.take::<Json<Labels>>()?.0);
    let cluster = Cluster {
        id,
        organization_id,
        name,
        provider,
        settings,
        cloud_provider,
        region,
        labels,
        status: row.take()?,
        reason: row.take()?,
        status_since: row.take()?,
        draining_at: row.take()?,
        is_forced: row.take()?,
        agent: read_agent(&mut row)?,
        unreachable_at: row.take()?,
        capacity: BTreeMap::new(),
        nodes: Vec::new(),
        foreign_id: row.take()?,
        hosting: row.take::<Json<_>>()?.0,
        pool: row.take()?,
        deployments: row.take()?,
        generation: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    };
    Ok((cluster, nodes, row))
}

fn read_agent(row: &mut Row) -> Result<Option<AgentHeartbeat>> {
    let at: Option<Time> = row.take()?;
    let (version, runtime): (Option<String>, Option<String>) = (row.take()?, row.take()?);
    let (version, runtime) = (version.unwrap_or_default(), runtime.unwrap_or_default());
    Ok(at.map(|at| AgentHeartbeat { at, version, runtime }))
}
