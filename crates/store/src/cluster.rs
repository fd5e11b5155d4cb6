//! Clusters. An organization sees its own and the shared ones; it changes only its own.

mod drain;
pub mod hosting;

use std::collections::BTreeMap;
use std::time::Duration;

use model::cluster::{
    Capacity, Cluster, Heard, Hosting, NewCluster, NewNode, Node, Reason, Settings, Status,
};
use model::event::Kind;
use model::reason::Coded as _;
use model::work::{Key, Lane};
use model::{ClusterId, OrganizationId, Place, Resources, Time};

use serde::Serialize;

use crate::db::{Json, Param, Row, Select, Value, json, params, readable, sql};
use crate::deployment::{losing, reserving};
use crate::status::{self, Lifecycle, status_row};
use crate::subject::{self, Id, Subject, by_id};
use crate::{Error, Read, Result, Scope, Tx, capacity, work};

pub use crate::status::{explain, save, transition};
pub use crate::subject::{count, list};
pub use drain::{drain, undrain};

by_id!(ClusterId: get(Read));

/// The worker that brings clusters to `ready`.
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
        add(&mut cluster, &labels, row)?;
        Ok(cluster)
    }

    /// Rows of one cluster follow each other, one per node and resource type.
    fn from_rows(rows: Vec<Row>) -> Vec<Self> {
        let mut clusters: Vec<Cluster> = Vec::new();
        for (cluster, labels, row) in readable(rows, read_cluster) {
            if clusters.last().is_none_or(|last| last.id != cluster.id) {
                clusters.push(cluster);
            }
            if let Some(cluster) = clusters.last_mut()
                && let Err(error) = add(cluster, &labels, row)
            {
                tracing::error!(cluster = %cluster.id, %error, "a row is left out");
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

    fn told(&self) -> impl Serialize + Send + Sync {
        self
    }

    async fn entered(&mut self, tx: &mut Tx) -> Result<()> {
        self.unreachable_at = (self.status == Status::Unreachable).then_some(tx.now());
        Ok(())
    }

    async fn retake(&self, tx: &mut Tx) -> Result<Self> {
        take_lock(tx, self.id).await
    }

    fn is_still(&self, seen: &Self) -> bool {
        self.status == seen.status
            && self.status_since == seen.status_since
            && self.unreachable_at == seen.unreachable_at
            && self.draining_at == seen.draining_at
    }
}

/// Which clusters are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// In that status.
    pub status: Option<Status>,
    /// Of that name.
    pub name: Option<String>,
    /// Only the organization's own: neither shared ones nor those on their way out.
    pub only_own: bool,
}

/// Makes a cluster. It is not ready yet: its worker takes it from here.
pub async fn create(
    tx: &mut Tx,
    organization: Option<OrganizationId>,
    new: &NewCluster,
) -> Result<Cluster> {
    let id = tx.id();
    create_as(tx, id, organization, new).await
}

/// The same with an id that was made before, because something is encrypted for it.
pub async fn create_as(
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
    capacity::set_nodes(tx, id, &nodes).await?;
    note(tx, id, "created").await
}

fn labels_of(nodes: &[NewNode]) -> BTreeMap<&str, &BTreeMap<String, String>> {
    nodes.iter().map(|node| (node.name.as_str(), &node.labels)).collect()
}

/// One cluster that may be changed.
pub async fn get_own(read: &mut Read, scope: Scope, id: ClusterId) -> Result<Cluster> {
    let cluster = get(read, scope, id).await?;
    if scope.organization().is_some() && cluster.organization_id != scope.organization() {
        return Err(Error::Conflict(format!(
            "the cluster {} is shared by all; only the platform administrator can change it",
            cluster.name
        )));
    }
    Ok(cluster)
}

/// The shared cluster of that name.
pub async fn find_shared(read: &mut Read, name: &str) -> Result<Option<Cluster>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM cluster LEFT JOIN capacity ON cluster_id = id ",
        "WHERE organization_id IS NULL AND name = $1 AND deleted_at IS NULL ORDER BY id, node, kind"
    );
    Ok(Cluster::from_rows(read.all(sql, params![name]).await?).into_iter().next())
}

/// The clusters that a pool has made.
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

/// Changes what users wrote on a cluster.
pub async fn set_words(
    tx: &mut Tx,
    id: ClusterId,
    name: Option<&str>,
    labels: Option<&BTreeMap<String, String>>,
) -> Result<Cluster> {
    let mut now = take_lock(tx, id).await?;
    now.name = name.map_or(now.name, str::to_owned);
    now.labels = labels.cloned().unwrap_or(now.labels);
    now.generation += 1;
    save(tx, &mut now, "updated").await?;
    Ok(now)
}

/// Gives a cluster that is one node its totals. What waits may fit now.
pub async fn set_total(tx: &mut Tx, id: ClusterId, total: &Resources) -> Result<Cluster> {
    let now = take_lock(tx, id).await?;
    let [node] = now.nodes.as_slice() else {
        return Err(Error::Conflict(format!(
            "the cluster {} has several nodes: change what each of them has",
            now.name
        )));
    };
    let place = Place { cluster: id, node: node.name.as_str().into() };
    count_change(tx, id).await?;
    capacity::set_total(tx, &place, total).await?;
    note(tx, id, "updated").await
}

/// Makes these a cluster's nodes. What is no longer named goes, if nothing of it is in use.
pub async fn set_nodes(tx: &mut Tx, id: ClusterId, nodes: &[NewNode]) -> Result<Cluster> {
    lock(tx, id).await?;
    let sql = sql!("UPDATE cluster SET nodes = $2 WHERE id = $1");
    tx.run(sql, params![id, Json(&labels_of(nodes))]).await?;
    count_change(tx, id).await?;
    capacity::set_nodes(tx, id, nodes).await?;
    note(tx, id, "updated").await
}

async fn count_change(tx: &mut Tx, id: ClusterId) -> Result<()> {
    let now = tx.now();
    let sql = sql!("UPDATE cluster SET generation = generation + 1, updated_at = $2 WHERE id = $1");
    tx.run(sql, params![id, now]).await.map(drop)
}

/// Takes capacity by hand: all of it or none.
pub async fn take(tx: &mut Tx, id: ClusterId, request: &Resources) -> Result<Cluster> {
    lock(tx, id).await?;
    capacity::take(tx, id, request).await?;
    note(tx, id, "capacity_taken").await
}

/// Gives back what was taken by hand: all of it or none.
pub async fn give_back(tx: &mut Tx, id: ClusterId, request: &Resources) -> Result<Cluster> {
    lock(tx, id).await?;
    capacity::give_back(tx, id, request).await?;
    note(tx, id, "capacity_given_back").await
}

/// Notes that capacity became free in some other way than by a deployment's end.
pub(crate) async fn freed(tx: &mut Tx, id: ClusterId) -> Result<()> {
    note(tx, id, "capacity_freed").await.map(drop)
}

/// Notes that a cluster's agent has spoken; not if it did less than `apart` ago and nobody waits for
/// it. Nothing goes to the log: whoever waits for the agent is woken, all others look when it is due.
pub async fn hear(
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

/// Keeps what a provider says of what it made.
pub async fn set_made(
    tx: &mut Tx,
    id: ClusterId,
    foreign_id: Option<&str>,
    hosting: &Hosting,
) -> Result<()> {
    let sql = sql!("UPDATE cluster SET hosting = $2 WHERE id = $1");
    tx.run(sql, params![id, Json(hosting)]).await?;
    // Two clusters can be two parts of one: then only the first has its name.
    let sql = sql!(
        "UPDATE cluster SET foreign_id = $2 WHERE id = $1 AND NOT EXISTS ",
        "(SELECT 1 FROM cluster WHERE foreign_id = $2 AND deleted_at IS NULL)"
    );
    match foreign_id {
        Some(name) => tx.run(sql, params![id, name]).await.map(drop),
        None => Ok(()),
    }
}

/// Changes what a cluster's provider is told. Its worker has that be so.
pub async fn set_settings(tx: &mut Tx, id: ClusterId, settings: &Settings) -> Result<Cluster> {
    let mut now = take_lock(tx, id).await?;
    now.settings = settings.clone();
    now.generation += 1;
    save(tx, &mut now, "updated").await?;
    Ok(now)
}

/// Retries a cluster that failed.
pub async fn retry(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    let mut now = take_lock(tx, cluster.id).await?;
    if now.status != Status::Failed {
        return Err(Error::Conflict(format!(
            "the cluster {} is {}; only one that is failed can be tried again",
            now.name, now.status
        )));
    }
    transition(tx, &mut now, Status::Accepted, Reason::RetryRequested).await?;
    Ok(now)
}

/// Asks for the provider's operation to be cancelled: the cluster has failed then, and can be retried.
pub async fn cancel(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    if !cluster.provider.makes() || !cluster.status.is_provisioning() {
        return Err(Error::Conflict(format!(
            "the cluster {} is {}; only one that its provider creates now can be cancelled",
            cluster.name, cluster.status
        )));
    }
    crate::operation::set_cancelled(tx, cluster.id, true).await?;
    note(tx, cluster.id, "cancelled").await
}

/// Asks for a cluster's end; not while deployments exist. No deployment can come after this.
///
/// What was given up on one that is lost does not keep it: its agent may never come back. One that
/// is forced goes even if what was made for it can't be taken away.
pub async fn request_delete(tx: &mut Tx, cluster: &Cluster, is_forced: bool) -> Result<Cluster> {
    let mut now = take_lock(tx, cluster.id).await?;
    if now.status.is_leaving() {
        if is_forced {
            now.is_forced = true;
            save(tx, &mut now, "forced").await?;
        }
        return Ok(now);
    }
    if now.pool.is_some() {
        reserving::give_up_all(tx, now.id).await?;
    }
    if now.status == Status::Unreachable {
        losing::forget(tx, now.id).await?;
        tx.settle_counts().await?;
    }
    // From here on nobody adds a deployment: its row is held.
    let sql = sql!("UPDATE cluster SET updated_at = updated_at WHERE id = $1 AND deployments = 0");
    let is_empty = tx.run(sql, params![now.id]).await? > 0;
    now = get(tx, Scope::All, now.id).await?;
    if !is_empty {
        return Err(Error::Conflict(format!(
            "the cluster {} still has deployments ({}); drain it or delete them first",
            now.name, now.deployments
        )));
    }
    now.is_forced |= is_forced;
    transition(tx, &mut now, Status::Deprovisioning, Reason::DeletionRequested { by: None })
        .await?;
    Ok(now)
}

/// The end: nothing of the cluster is left but its history.
pub async fn delete(tx: &mut Tx, cluster: &Cluster) -> Result<()> {
    let now: Time = tx.now();
    tx.run(sql!("UPDATE cluster SET deleted_at = $2 WHERE id = $1"), params![cluster.id, now])
        .await?;
    crate::operation::secret::forget(tx, cluster.id).await?;
    status::append(tx, cluster, "deleted").await
}

/// Counts one more deployment, if the cluster takes any and that is not more than `limit`.
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
    if get(tx, Scope::All, id).await?.status.is_leaving() {
        return Err(Error::Conflict(format!("the cluster {id} is being deleted")));
    }
    Err(Error::Limit { limit, what: "deployments per cluster" })
}

/// Counts so many deployments more or fewer; more only while the cluster takes any.
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
        return Err(Error::Conflict(format!("the cluster {id} is being deleted")));
    }
    Ok(())
}

/// Keeps others from giving out or freeing this cluster's capacity until the end of the transaction.
///
/// What changes capacity takes locks in one order, so that no two wait for each other: this one (of
/// several clusters, by id), deployments by id, capacity; and at the commit, when nothing else is
/// waited for, what counts deployments (`Tx::count`) and the work queue.
pub async fn lock(tx: &mut Tx, id: ClusterId) -> Result<()> {
    tx.lock(&format!("cluster/{id}")).await
}

/// The cluster as it is now, with its lock.
pub(crate) async fn take_lock(tx: &mut Tx, id: ClusterId) -> Result<Cluster> {
    lock(tx, id).await?;
    get(tx, Scope::All, id).await
}

/// Notes that a cluster has a new token for its agent.
pub(crate) async fn token_made(tx: &mut Tx, id: ClusterId) -> Result<()> {
    note(tx, id, "token_made").await.map(drop)
}

/// Appends the cluster's state to the log and wakes its worker.
pub(crate) async fn note(tx: &mut Tx, id: ClusterId, change: &str) -> Result<Cluster> {
    let cluster = get(tx, Scope::All, id).await?;
    status::note(tx, &cluster, change).await?;
    Ok(cluster)
}

/// Adds what the rest of a row says of one node and resource type, if there is one.
fn add(cluster: &mut Cluster, labels: &Labels, mut row: Row) -> Result<()> {
    let Some(node) = row.take::<Option<String>>()? else { return Ok(()) };
    let kind: String = row.take()?;
    let capacity = Capacity { total: row.take()?, used: row.take()?, manual: row.take()? };
    if cluster.nodes.last().is_none_or(|last| last.name != node) {
        let labels = labels.get(&node).cloned().unwrap_or_default();
        cluster.nodes.push(Node { name: node, labels, capacity: BTreeMap::new() });
    }
    let all = cluster.capacity.entry(kind.clone()).or_default();
    all.total = all.total.plus(capacity.total);
    all.used = all.used.plus(capacity.used);
    all.manual = all.manual.plus(capacity.manual);
    if let Some(node) = cluster.nodes.last_mut() {
        node.capacity.insert(kind, capacity);
    }
    Ok(())
}

/// The labels of nodes, by their names.
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
        agent: heard(&mut row)?,
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

fn heard(row: &mut Row) -> Result<Option<Heard>> {
    let at: Option<Time> = row.take()?;
    let (version, runtime): (Option<String>, Option<String>) = (row.take()?, row.take()?);
    let (version, runtime) = (version.unwrap_or_default(), runtime.unwrap_or_default());
    Ok(at.map(|at| Heard { at, version, runtime }))
}
