//! Clusters. An organization sees its own and the shared ones; it changes only its own.

mod drain;
pub mod hosting;

use std::collections::BTreeMap;
use std::time::Duration;

use model::cluster::{
    Capacity, Cluster, Heard, Hosting, NewCluster, NewNode, Node, Settings, Status,
};
use model::event::Kind;
use model::work::{Key, Lane};
use model::{ClusterId, OrganizationId, Place, Resources, Time};

use crate::db::{Json, Row, Select, params, readable, sql};
use crate::deployment::{losing, reserving};
use crate::{Error, Page, Read, Result, Scope, Tx, capacity, event, work};

pub use drain::{drain, undrain};

/// The worker that brings clusters to `ready`.
pub const WORKER: &str = "cluster";

macro_rules! columns {
    () => {
        "c.id, c.organization_id, c.name, c.provider, c.settings, c.cloud_provider, c.region, c.labels, \
         c.nodes, c.status, c.status_reason, c.status_since, c.draining_at, c.is_forced, c.heard_at, c.agent_version, c.agent_runtime, c.unreachable_at, \
         c.foreign_id, c.hosting, c.pool, c.deployments, c.generation, c.created_by, c.created_at, c.updated_at, p.node, p.kind, p.total, p.used, p.manual"
    };
}
use columns;

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
    let nodes = new.all_nodes();
    tx.run(
        sql!(
            "INSERT INTO cluster (id, organization_id, name, provider, settings, cloud_provider, ",
            "region, labels, nodes, status, status_reason, status_since, created_by, created_at, ",
            "updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'accepted', $10, $12, $11, $12, $12)"
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
            "Asked for; its worker will take it on.",
            by,
            now
        ],
    )
    .await?;
    capacity::set_nodes(tx, id, &nodes).await?;
    note(tx, id, "created").await
}

fn labels_of(nodes: &[NewNode]) -> BTreeMap<&str, &BTreeMap<String, String>> {
    nodes.iter().map(|node| (node.name.as_str(), &node.labels)).collect()
}

/// One cluster that may be seen.
pub async fn get(read: &mut Read, scope: Scope, id: ClusterId) -> Result<Cluster> {
    let own = scope.organization();
    let select = Select::new(concat!(
        "SELECT ",
        columns!(),
        " FROM cluster c LEFT JOIN capacity p ON p.cluster_id = c.id WHERE c.deleted_at IS NULL"
    ));
    let rows = select
        .and("c.id = ?", Some(&id))
        .and("(c.organization_id = ? OR c.organization_id IS NULL)", own.as_ref())
        .text(" ORDER BY p.node, p.kind")
        .all(read)
        .await?;
    let is_there = !rows.is_empty();
    match from_rows(rows)?.into_iter().next() {
        None if is_there => Err(Error::Broken(format!("the cluster {id} can't be read"))),
        found => found.ok_or_else(|| Error::not_found("cluster", id)),
    }
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
        " FROM cluster c LEFT JOIN capacity p ON p.cluster_id = c.id ",
        "WHERE c.organization_id IS NULL AND c.name = $1 AND c.deleted_at IS NULL ORDER BY c.id, p.node, p.kind"
    );
    Ok(from_rows(read.all(sql, params![name]).await?)?.into_iter().next())
}

/// The clusters that a pool has made.
pub(crate) async fn of_pool(read: &mut Read, pool: &str) -> Result<Vec<Cluster>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM cluster c LEFT JOIN capacity p ON p.cluster_id = c.id ",
        "WHERE c.pool = $1 AND c.deleted_at IS NULL ORDER BY c.id, p.node, p.kind"
    );
    from_rows(read.all(sql, params![pool]).await?)
}

/// A part of the clusters that may be seen.
pub async fn list(
    read: &mut Read,
    scope: Scope,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Cluster>> {
    let select = Select::new(concat!(
        "SELECT ",
        columns!(),
        " FROM (SELECT * FROM cluster WHERE deleted_at IS NULL"
    ));
    let own = scope.organization();
    let rows = restricted(select, own.as_ref(), filter)
        .and("id > ?", page.after.as_ref())
        .then("ORDER BY id LIMIT ?", &page.limit)
        .then("OFFSET ?", &page.skip)
        .text(") c LEFT JOIN capacity p ON p.cluster_id = c.id ORDER BY c.id, p.node, p.kind")
        .all(read)
        .await?;
    from_rows(rows)
}

/// How many clusters that may be seen there are.
pub async fn count(read: &mut Read, scope: Scope, filter: &Filter) -> Result<i64> {
    let select = Select::new("SELECT COUNT(*) FROM cluster WHERE deleted_at IS NULL");
    let own = scope.organization();
    let rows = restricted(select, own.as_ref(), filter).all(read).await?;
    rows.into_iter().next().map_or(Ok(0), |mut row| row.take())
}

fn restricted<'a>(
    select: Select<'a>,
    own: Option<&'a OrganizationId>,
    filter: &'a Filter,
) -> Select<'a> {
    let visible = if filter.only_own {
        "organization_id = ? AND status NOT IN ('deprovisioning', 'cleanup')"
    } else {
        "(organization_id = ? OR organization_id IS NULL)"
    };
    select
        .and(visible, own)
        .and("status = ?", filter.status.as_ref())
        .and("name = ?", filter.name.as_ref())
}

/// Changes what users wrote on a cluster.
pub async fn set_words(
    tx: &mut Tx,
    id: ClusterId,
    name: Option<&str>,
    labels: Option<&BTreeMap<String, String>>,
) -> Result<Cluster> {
    lock(tx, id).await?;
    let now = tx.now();
    tx.run(
        sql!(
            "UPDATE cluster SET name = COALESCE($2, name), labels = COALESCE($3, labels), ",
            "generation = generation + 1, updated_at = $4 WHERE id = $1"
        ),
        params![id, name, labels, now],
    )
    .await?;
    note(tx, id, "updated").await
}

/// Gives a cluster that is one node its totals. What waits may fit now.
pub async fn set_total(tx: &mut Tx, id: ClusterId, total: &Resources) -> Result<Cluster> {
    lock(tx, id).await?;
    let now = get(tx, Scope::All, id).await?;
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

/// Moves a cluster on, with the reason. A step that its lifecycle does not have is a bug.
pub async fn set_status(
    tx: &mut Tx,
    cluster: &Cluster,
    to: Status,
    reason: &str,
) -> Result<Cluster> {
    if !cluster.status.may_become(to) {
        return Err(Error::Broken(format!("a cluster can't go from {} to {to}", cluster.status)));
    }
    let now = tx.now();
    let unreachable_at = (to == Status::Unreachable).then_some(now);
    let moved = tx
        .run(
            sql!(
                "UPDATE cluster SET status = $3, status_reason = $4, status_since = $5, ",
                "updated_at = $5, unreachable_at = $6 ",
                "WHERE id = $1 AND status = $2 AND deleted_at IS NULL"
            ),
            params![cluster.id, cluster.status, to, reason, now, unreachable_at],
        )
        .await?;
    if moved == 0 {
        return Err(Error::Conflict(format!(
            "the cluster {} is no longer {}",
            cluster.id, cluster.status
        )));
    }
    note(tx, cluster.id, to.as_str()).await
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

/// Says why a cluster is where it is, if that is news.
pub async fn explain(tx: &mut Tx, cluster: &Cluster, reason: &str) -> Result<()> {
    let now = tx.now();
    let sql = sql!(
        "UPDATE cluster SET status_reason = $3, updated_at = $4 WHERE id = $1 AND status = $2 ",
        "AND status_reason <> $3 AND deleted_at IS NULL"
    );
    if tx.run(sql, params![cluster.id, cluster.status, reason, now]).await? > 0 {
        note(tx, cluster.id, "explained").await?;
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
    lock(tx, id).await?;
    let sql = sql!("UPDATE cluster SET settings = $2 WHERE id = $1");
    tx.run(sql, params![id, Json(settings)]).await?;
    count_change(tx, id).await?;
    note(tx, id, "updated").await
}

/// Has a cluster that failed be tried again.
pub async fn retry(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    if cluster.status != Status::Failed {
        return Err(Error::Conflict(format!(
            "the cluster {} is {}; only one that is failed can be tried again",
            cluster.name, cluster.status
        )));
    }
    set_status(tx, cluster, Status::Accepted, "It is tried again, as was asked for.").await
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
    if is_forced && !cluster.is_forced {
        let sql = sql!("UPDATE cluster SET is_forced = 1 WHERE id = $1");
        tx.run(sql, params![cluster.id]).await?;
    }
    if cluster.status.is_leaving() {
        if is_forced {
            return note(tx, cluster.id, "forced").await;
        }
        return Ok(cluster.clone());
    }
    if cluster.pool.is_some() {
        lock(tx, cluster.id).await?;
        reserving::give_up_all(tx, cluster.id).await?;
    }
    if cluster.status == Status::Unreachable {
        lock(tx, cluster.id).await?;
        losing::forget(tx, cluster.id).await?;
        tx.settle_counts().await?;
    }
    let now = tx.now();
    let leaving = tx
        .run(
            sql!(
                "UPDATE cluster SET status = 'deprovisioning', status_reason = $2, updated_at = $3, ",
                "status_since = $3, unreachable_at = NULL WHERE id = $1 AND deployments = 0 AND deleted_at IS NULL ",
                "AND status NOT IN ('deprovisioning', 'cleanup')"
            ),
            params![cluster.id, "Its deletion was asked for.", now],
        )
        .await?;
    if leaving == 0 {
        let now = get(tx, Scope::All, cluster.id).await?;
        return Err(Error::Conflict(format!(
            "the cluster {} still has deployments ({}); drain it or delete them first",
            now.name, now.deployments
        )));
    }
    note(tx, cluster.id, Status::Deprovisioning.as_str()).await
}

/// The end: nothing of the cluster is left but its history.
pub async fn delete(tx: &mut Tx, cluster: &Cluster) -> Result<()> {
    let now: Time = tx.now();
    tx.run(sql!("UPDATE cluster SET deleted_at = $2 WHERE id = $1"), params![cluster.id, now])
        .await?;
    crate::operation::secret::forget(tx, cluster.id).await?;
    let organization = cluster.organization_id;
    event::append(tx, Kind::Cluster, cluster.id, organization, "deleted", cluster).await
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

/// Notes that a cluster has a new token for its agent.
pub(crate) async fn token_made(tx: &mut Tx, id: ClusterId) -> Result<()> {
    note(tx, id, "token_made").await.map(drop)
}

/// Wakes the workers of everything that is not at rest: the safety net.
pub async fn resync(tx: &mut Tx) -> Result<()> {
    let clusters = sql!(
        "SELECT id FROM cluster WHERE deleted_at IS NULL AND (status <> 'ready' OR provider <> 'local') ",
        "ORDER BY id"
    );
    for mut row in tx.all(clusters, params![]).await? {
        let id: ClusterId = row.take()?;
        work::wake(tx, Lane::Background, Key::new(WORKER, id));
    }
    Ok(())
}

/// Appends the cluster's state to the log and wakes its worker.
pub(crate) async fn note(tx: &mut Tx, id: ClusterId, change: &str) -> Result<Cluster> {
    let cluster = get(tx, Scope::All, id).await?;
    event::append(tx, Kind::Cluster, id, cluster.organization_id, change, &cluster).await?;
    work::wake(tx, Lane::Priority, Key::new(WORKER, id));
    Ok(cluster)
}

/// Rows of one cluster follow each other, one per node and resource type.
fn from_rows(rows: Vec<Row>) -> Result<Vec<Cluster>> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for (cluster, labels, mut row) in readable(rows, read_cluster) {
        if clusters.last().is_none_or(|last| last.id != cluster.id) {
            clusters.push(cluster);
        }
        if let (Some(node), Some(cluster)) = (row.take::<Option<String>>()?, clusters.last_mut()) {
            let kind: String = row.take()?;
            let capacity = Capacity { total: row.take()?, used: row.take()?, manual: row.take()? };
            add(cluster, node, &labels, kind, capacity);
        }
    }
    Ok(clusters)
}

fn add(cluster: &mut Cluster, node: String, labels: &Labels, kind: String, capacity: Capacity) {
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
        status_reason: row.take()?,
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
