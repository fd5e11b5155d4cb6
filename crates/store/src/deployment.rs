//! Deployments: asking for them, reading them, taking them down.
//!
//! What moves them is next door: [`placing`] gives and takes capacity, [`reporting`] takes in what
//! agents say, [`losing`] gives up what was on a cluster that is lost. What is placed and run is a
//! [`replica`]; a deployment's status is the sum of its replicas'.

pub mod hosting;
pub mod losing;
pub mod moving;
pub mod placing;
pub mod replica;
pub mod reporting;
pub mod reserving;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::deployment::{Deployment, NewDeployment, Status};
use model::event::Kind;
use model::replica::Replica;
use model::work::{Key, Lane};
use model::{ClusterId, DeploymentId, InstanceId, OrganizationId, Time};

use crate::db::{Counter, Json, Row, Select, params, readable, sql};
use crate::{Error, Page, Read, Result, Scope, Tx, cluster, event, instance, organization};

macro_rules! columns {
    () => {
        "id, organization_id, instance_id, reserved, pinned_to, placed_on, name, spec, priority, labels, status, \
         status_reason, node, endpoints, generation, created_by, created_at, updated_at, started_at"
    };
}
pub(crate) use columns;

/// The worker that ends what was asked to run for a while.
pub const ENDING: &str = "ending";
/// What a replica says that nobody has looked at yet.
pub const WAITS: &str = "Waits to be placed.";

/// How many deployments there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// In one organization.
    pub per_organization: i64,
    /// On one cluster, or pinned to it.
    pub per_cluster: i64,
}

/// Which deployments are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// That one.
    pub id: Option<DeploymentId>,
    /// Of that name.
    pub name: Option<String>,
    /// On that cluster, or pinned to it.
    pub cluster: Option<ClusterId>,
    /// In that status.
    pub status: Option<Status>,
    /// Also those that belong to instances, or only hold room?
    pub with_instances: bool,
}

/// Makes a deployment. It waits in the queue until placement finds room.
pub async fn create(
    tx: &mut Tx,
    owner: OrganizationId,
    new: &NewDeployment,
    limits: Limits,
) -> Result<Deployment> {
    if let Some(id) = new.pinned_to {
        cluster::get(tx, Scope::Organization(owner), id).await?;
    }
    if let Some(id) = new.pinned_to {
        cluster::add_deployment(tx, id, limits.per_cluster).await?;
    }
    organization::add_deployment(tx, owner, limits.per_organization).await?;
    insert(tx, owner, new, None, None).await
}

async fn insert(
    tx: &mut Tx,
    owner: OrganizationId,
    new: &NewDeployment,
    instance: Option<InstanceId>,
    reserved: Option<&str>,
) -> Result<Deployment> {
    let (id, now, by) = (tx.id::<DeploymentId>(), tx.now(), tx.actor().to_string());
    tx.run(
        sql!(
            "INSERT INTO deployment (id, organization_id, pinned_to, name, image, spec, priority, ",
            "labels, next_number, status, status_reason, endpoints, created_by, created_at, updated_at, ",
            "instance_id, reserved) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 'queued', $9, '[]', $10, $11, $11, ",
            "$12, $13)"
        ),
        params![
            id,
            owner,
            new.pinned_to,
            new.name,
            new.spec.image,
            Json(&new.spec),
            new.priority,
            new.labels,
            WAITS,
            by,
            now,
            instance,
            reserved
        ],
    )
    .await?;
    replica::create(tx, id, new.spec.replicas).await?;
    note(tx, id, "created").await
}

/// One deployment.
pub async fn get(read: &mut Read, scope: Scope, id: DeploymentId) -> Result<Deployment> {
    let filter = Filter { id: Some(id), ..Filter::default() };
    let found = rows(read, scope, &filter, &Page::first(1)).await?.into_iter().next();
    from_row(found.ok_or_else(|| Error::not_found("deployment", id))?)
}

/// A part of the deployments in scope.
pub async fn list(
    read: &mut Read,
    scope: Scope,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Deployment>> {
    Ok(readable(rows(read, scope, filter, page).await?, from_row))
}

async fn rows(read: &mut Read, scope: Scope, filter: &Filter, page: &Page) -> Result<Vec<Row>> {
    let own = scope.organization();
    let select =
        Select::new(concat!("SELECT ", columns!(), " FROM deployment WHERE deleted_at IS NULL"));
    restricted(select, own.as_ref(), filter)
        .and("id > ?", page.after.as_ref())
        .then("ORDER BY id LIMIT ?", &page.limit)
        .then("OFFSET ?", &page.skip)
        .all(read)
        .await
}

/// The deployments in scope of which something waits, first in line first.
pub async fn queue(
    read: &mut Read,
    scope: Scope,
    pinned_to: Option<ClusterId>,
    limit: i64,
) -> Result<Vec<Deployment>> {
    let own = scope.organization();
    let waiting = concat!(
        "SELECT ",
        columns!(),
        " FROM deployment WHERE deleted_at IS NULL AND id IN ",
        "(SELECT deployment_id FROM replica WHERE status IN ('queued', 'preempted')) ",
        "AND instance_id IS NULL AND reserved IS NULL"
    );
    let rows = Select::new(waiting)
        .and("organization_id = ?", own.as_ref())
        .and("pinned_to = ?", pinned_to.as_ref())
        .then("ORDER BY priority DESC, created_at, id LIMIT ?", &limit)
        .all(read)
        .await?;
    Ok(readable(rows, from_row))
}

/// How many deployments in scope there are.
pub async fn count(read: &mut Read, scope: Scope, filter: &Filter) -> Result<i64> {
    let own = scope.organization();
    let select = Select::new("SELECT COUNT(*) FROM deployment WHERE deleted_at IS NULL");
    let rows = restricted(select, own.as_ref(), filter).all(read).await?;
    rows.into_iter().next().map_or(Ok(0), |mut row| row.take())
}

const ON_CLUSTER: &str = "(pinned_to = ? OR EXISTS (SELECT 1 FROM replica r \
                          WHERE r.deployment_id = deployment.id AND r.cluster_id = ?))";

fn restricted<'a>(
    select: Select<'a>,
    own: Option<&'a OrganizationId>,
    filter: &'a Filter,
) -> Select<'a> {
    let is_wide = filter.with_instances || filter.id.is_some();
    let users_own = " AND instance_id IS NULL AND reserved IS NULL";
    let select = if is_wide { select } else { select.text(users_own) };
    select
        .and("organization_id = ?", own)
        .and("id = ?", filter.id.as_ref())
        .and("name = ?", filter.name.as_ref())
        .and(ON_CLUSTER, filter.cluster.as_ref())
        .and("status = ?", filter.status.as_ref())
}

/// What of a deployment shall change.
#[derive(Debug, Default)]
pub struct Change {
    /// Its name.
    pub name: Option<String>,
    /// Its priority.
    pub priority: Option<i64>,
    /// What users wrote on it.
    pub labels: Option<BTreeMap<String, String>>,
    /// How many replicas run.
    pub replicas: Option<u32>,
}

/// Changes a deployment. Replicas that are too many are stopped, those that are missing wait.
pub async fn set(tx: &mut Tx, id: DeploymentId, change: &Change) -> Result<Deployment> {
    let (mut deployment, replicas) = take_with_places(tx, Scope::All, id).await?;
    if let Some(wanted) = change.replicas {
        deployment.spec.replicas = wanted;
        scale(tx, &deployment, &replicas, wanted).await?;
    }
    tx.run(
        sql!(
            "UPDATE deployment SET name = COALESCE($2, name), priority = COALESCE($3, priority), ",
            "labels = COALESCE($4, labels), spec = $5, generation = generation + 1 WHERE id = $1"
        ),
        params![id, change.name, change.priority, change.labels, Json(&deployment.spec)],
    )
    .await?;
    let changed = get(tx, Scope::All, id).await?;
    replica::settle(tx, &changed, "updated").await
}

async fn scale(tx: &mut Tx, now: &Deployment, replicas: &[Replica], wanted: u32) -> Result<()> {
    if !(now.status.is_wanted() || now.status.is_waiting()) {
        return Err(Error::Conflict(format!("it is {}; make it anew", now.status)));
    }
    let mut kept: Vec<&Replica> =
        replicas.iter().filter(|replica| replica.status != Status::Deleting).collect();
    let have = u32::try_from(kept.len()).unwrap_or(u32::MAX);
    if wanted > have {
        return replica::create(tx, now.id, wanted - have).await;
    }
    // Those that wait go first, then the youngest.
    kept.sort_by_key(|replica| (replica.place.is_some(), Reverse(replica.id.number)));
    for replica in kept.into_iter().take((have - wanted) as usize) {
        remove(tx, now, replica, "It is one too many.").await?;
    }
    Ok(())
}

/// Has a replica end. What nobody has to stop is gone at once.
async fn remove(tx: &mut Tx, now: &Deployment, replica: &Replica, reason: &str) -> Result<()> {
    let has_image = now.spec.image.is_some();
    replica::tell(tx, replica.id, Status::Deleting, reason, has_image).await?;
    if replica.place.is_some() && has_image {
        return Ok(());
    }
    replica::leave(tx, now, replica).await?;
    replica::delete(tx, replica.id).await
}

/// Asks for a deployment's end. What runs is stopped first; what does not is gone at once.
pub async fn request_delete(tx: &mut Tx, scope: Scope, id: DeploymentId) -> Result<Deployment> {
    let (mut deployment, replicas) = take_with_places(tx, scope, id).await?;
    if deployment.status == Status::Deleting {
        return Ok(deployment);
    }
    let reason = "Its deletion was asked for.";
    (deployment.status, deployment.status_reason) = (Status::Deleting, reason.into());
    for replica in &replicas {
        remove(tx, &deployment, replica, reason).await?;
    }
    let deployment = replica::settle(tx, &deployment, Status::Deleting.as_str()).await?;
    clear_away(tx, &deployment).await?;
    Ok(deployment)
}

/// The end of a deployment that shall go, once nothing of it is left but its history.
pub(crate) async fn clear_away(tx: &mut Tx, deployment: &Deployment) -> Result<()> {
    if deployment.status != Status::Deleting || !replica::of(tx, deployment.id).await?.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    let sql = sql!("UPDATE deployment SET deleted_at = $2, updated_at = $2 WHERE id = $1");
    tx.run(sql, params![deployment.id, now]).await?;
    if let Some(id) = deployment.pinned_to {
        tx.count(Counter::Cluster(id), -1);
    }
    // What belongs to an instance is counted by its quota, and what only holds room by nobody.
    if deployment.instance_id.is_none() && deployment.reserved.is_none() {
        tx.count(Counter::Organization(deployment.organization_id), -1);
    }
    append(tx, deployment, "deleted").await
}

/// Ends replicas whose time is over; when the next one's is, if one runs.
pub async fn end_due(tx: &mut Tx, id: DeploymentId) -> Result<Option<Time>> {
    let (deployment, replicas) = take_with_places(tx, Scope::All, id).await?;
    let Some(seconds) = deployment.spec.run_for else { return Ok(None) };
    let life = Duration::from_secs(seconds.into());
    let running = replicas.iter().filter(|replica| replica.status == Status::Running);
    let ends = running.filter_map(|replica| Some((replica, replica.started_at? + life)));
    let (over, later): (Vec<_>, Vec<_>) = ends.partition(|(_, end)| *end <= tx.now());
    let has_image = deployment.spec.image.is_some();
    for (replica, _) in &over {
        let reason = format!("Its time of {seconds} s is over.");
        replica::tell(tx, replica.id, Status::Completed, &reason, has_image).await?;
        if !has_image {
            replica::leave(tx, &deployment, replica).await?;
        }
    }
    if !over.is_empty() {
        replica::settle(tx, &deployment, Status::Completed.as_str()).await?;
    }
    Ok(later.into_iter().map(|(_, end)| end).min())
}

/// Has the worker look when the time of what runs now is over.
pub(crate) fn plan_end(tx: &mut Tx, deployment: &Deployment) {
    if let Some(seconds) = deployment.spec.run_for {
        let at = tx.now() + Duration::from_secs(seconds.into());
        tx.wake(Key::new(ENDING, deployment.id), Lane::Priority, at);
    }
}

/// The deployment, whose replicas nobody else changes from here to the end of the transaction.
pub(crate) async fn take(tx: &mut Tx, id: DeploymentId) -> Result<Deployment> {
    take_if_there(tx, id).await?.ok_or_else(|| Error::not_found("deployment", id))
}

/// The same, for who does not mind that it is gone.
async fn take_if_there(tx: &mut Tx, id: DeploymentId) -> Result<Option<Deployment>> {
    let now = tx.now();
    let sql = sql!(
        "UPDATE deployment SET updated_at = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING ",
        columns!()
    );
    let row = tx.first(sql, params![id, now]).await?;
    row.map(from_row).transpose()
}

/// The same, with the locks of the clusters whose capacity it holds.
async fn take_with_places(
    tx: &mut Tx,
    scope: Scope,
    id: DeploymentId,
) -> Result<(Deployment, Vec<Replica>)> {
    // It may be moving at this very moment; each try looks again, and holds nothing of the one
    // before: the lock of a cluster comes before that of a deployment's row.
    for _ in 0..8 {
        let start = tx.mark().await?;
        get(tx, scope, id).await?;
        let seen = places(&replica::of(tx, id).await?);
        for cluster in &seen {
            cluster::lock(tx, *cluster).await?;
        }
        let deployment = take(tx, id).await?;
        let replicas = replica::of(tx, id).await?;
        if places(&replicas).is_subset(&seen) {
            return Ok((deployment, replicas));
        }
        tx.return_to(start).await?;
    }
    Err(Error::Unavailable("the deployment keeps moving".into()))
}

fn places(replicas: &[Replica]) -> BTreeSet<ClusterId> {
    replicas.iter().filter_map(|replica| Some(replica.place.as_ref()?.cluster)).collect()
}

/// Reads the deployment again and appends its state to the log.
pub(crate) async fn note(tx: &mut Tx, id: DeploymentId, change: &str) -> Result<Deployment> {
    let deployment = get(tx, Scope::All, id).await?;
    append(tx, &deployment, change).await?;
    Ok(deployment)
}

async fn append(tx: &mut Tx, deployment: &Deployment, change: &str) -> Result<()> {
    let shown = Deployment { spec: deployment.spec.redacted(), ..deployment.clone() };
    let owner = Some(deployment.organization_id);
    if let Some(instance) = deployment.instance_id {
        tx.wake(Key::new(instance::WORKER, instance), Lane::Priority, tx.now());
    }
    event::append(tx, Kind::Deployment, deployment.id, owner, change, &shown).await
}

pub(crate) fn from_row(mut row: Row) -> Result<Deployment> {
    Ok(Deployment {
        id: row.take()?,
        organization_id: row.take()?,
        instance_id: row.take()?,
        reserved: row.take()?,
        pinned_to: row.take()?,
        placed_on: row.take()?,
        name: row.take()?,
        spec: row.take::<Json<_>>()?.0,
        priority: row.take()?,
        labels: row.take::<Json<_>>()?.0,
        status: row.take()?,
        status_reason: row.take()?,
        node: row.take()?,
        endpoints: row.take::<Json<_>>()?.0,
        generation: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
        started_at: row.take()?,
    })
}
