//! Deployments: asking for them, reading them, taking them down.
//!
//! What moves them is next door: [`placing`] gives and takes clusters, [`reporting`] takes in what
//! agents say. `placed_on` is set exactly while the deployment holds that cluster's capacity.

pub mod placing;
pub mod reporting;

use std::collections::BTreeMap;

use model::deployment::{Deployment, NewDeployment, Status};
use model::event::Kind;
use model::{ClusterId, DeploymentId, OrganizationId};

use crate::db::{Json, Row, Select, params, sql};
use crate::{Error, Page, Read, Result, Scope, Tx, cluster, event, organization};

macro_rules! columns {
    () => {
        "id, organization_id, pinned_to, placed_on, name, spec, priority, labels, status, \
         status_reason, node, endpoints, generation, desired, created_by, created_at, updated_at, \
         started_at"
    };
}
pub(crate) use columns;

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
    let (id, now, by) = (tx.id::<DeploymentId>(), tx.now(), tx.actor().to_string());
    tx.run(
        sql!(
            "INSERT INTO deployment (id, organization_id, pinned_to, name, image, spec, priority, ",
            "labels, status, status_reason, endpoints, created_by, created_at, updated_at) ",
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9, '[]', $10, $11, $11)"
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
            "Waits to be placed.",
            by,
            now
        ],
    )
    .await?;
    wake_placement(tx, owner, new.pinned_to).await?;
    note(tx, id, "created").await
}

/// One deployment.
pub async fn get(read: &mut Read, scope: Scope, id: DeploymentId) -> Result<Deployment> {
    let filter = Filter { id: Some(id), ..Filter::default() };
    let found = list(read, scope, &filter, &Page::first(1)).await?;
    found.into_iter().next().ok_or_else(|| Error::not_found("deployment", id))
}

/// A part of the deployments in scope.
pub async fn list(
    read: &mut Read,
    scope: Scope,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Deployment>> {
    let own = scope.organization();
    let select =
        Select::new(concat!("SELECT ", columns!(), " FROM deployment WHERE deleted_at IS NULL"));
    let rows = restricted(select, own.as_ref(), filter)
        .and("id > ?", page.after.as_ref())
        .then("ORDER BY id LIMIT ?", &page.limit)
        .then("OFFSET ?", &page.skip)
        .all(read)
        .await?;
    rows.into_iter().map(from_row).collect()
}

/// How many deployments in scope there are.
pub async fn count(read: &mut Read, scope: Scope, filter: &Filter) -> Result<i64> {
    let own = scope.organization();
    let select = Select::new("SELECT COUNT(*) FROM deployment WHERE deleted_at IS NULL");
    let rows = restricted(select, own.as_ref(), filter).all(read).await?;
    rows.into_iter().next().map_or(Ok(0), |mut row| row.take())
}

fn restricted<'a>(
    select: Select<'a>,
    own: Option<&'a OrganizationId>,
    filter: &'a Filter,
) -> Select<'a> {
    select
        .and("organization_id = ?", own)
        .and("id = ?", filter.id.as_ref())
        .and("name = ?", filter.name.as_ref())
        .and("(pinned_to = ? OR placed_on = ?)", filter.cluster.as_ref())
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
}

/// Changes a deployment without touching what runs. Its place in the queue may change.
pub async fn set(tx: &mut Tx, deployment: &Deployment, change: &Change) -> Result<Deployment> {
    let now = tx.now();
    tx.run(
        sql!(
            "UPDATE deployment SET name = COALESCE($2, name), priority = COALESCE($3, priority), ",
            "labels = COALESCE($4, labels), generation = generation + 1, updated_at = $5 WHERE id = $1"
        ),
        params![deployment.id, change.name, change.priority, change.labels, now],
    )
    .await?;
    // Where it is now, which need not be where the caller saw it.
    let changed = note(tx, deployment.id, "updated").await?;
    if change.priority.is_some() {
        wake_placement(tx, changed.organization_id, changed.cluster_id()).await?;
    }
    Ok(changed)
}

/// Asks for a deployment's end. What runs is stopped first; what does not is gone at once.
pub async fn request_delete(tx: &mut Tx, scope: Scope, id: DeploymentId) -> Result<Deployment> {
    // It may be moving at this very moment; each try looks again, and holds nothing of the one
    // before: the lock of a cluster comes before that of a deployment's row.
    for _ in 0..8 {
        let start = tx.mark().await?;
        let seen = get(tx, scope, id).await?;
        if let Some(on) = seen.cluster_id() {
            cluster::lock(tx, on).await?;
        }
        if seen.status == Status::Deleting {
            return Ok(seen);
        }
        if try_delete(tx, &seen).await? {
            return clear_away(tx, id).await;
        }
        tx.return_to(start).await?;
    }
    Err(Error::Unavailable("the deployment keeps changing".into()))
}

async fn try_delete(tx: &mut Tx, seen: &Deployment) -> Result<bool> {
    let now = tx.now();
    let moved = tx
        .run(
            sql!(
                "UPDATE deployment SET status = 'deleting', status_reason = $3, updated_at = $4, ",
                "desired = desired + 1, answered = CASE WHEN image IS NULL OR placed_on IS NULL ",
                "THEN desired + 1 ELSE answered END WHERE id = $1 AND status = $2 AND deleted_at IS NULL"
            ),
            params![seen.id, seen.status, "Its deletion was asked for.", now],
        )
        .await?;
    Ok(moved == 1)
}

/// Ends at once what no agent has to stop.
async fn clear_away(tx: &mut Tx, id: DeploymentId) -> Result<Deployment> {
    let mut deployment = note(tx, id, Status::Deleting.as_str()).await?;
    if deployment.placed_on.is_some() && deployment.spec.image.is_none() {
        deployment = placing::unplace(tx, &deployment).await?;
    }
    if deployment.placed_on.is_none() {
        delete(tx, &deployment).await?;
    }
    Ok(deployment)
}

/// The end: nothing of the deployment is left but its history.
pub(crate) async fn delete(tx: &mut Tx, deployment: &Deployment) -> Result<()> {
    let now = tx.now();
    let gone = tx
        .run(
            sql!(
                "UPDATE deployment SET deleted_at = $2, updated_at = $2 ",
                "WHERE id = $1 AND placed_on IS NULL AND deleted_at IS NULL"
            ),
            params![deployment.id, now],
        )
        .await?;
    if gone == 0 {
        return Err(Error::Broken(format!("{} still holds capacity", deployment.id)));
    }
    if let Some(id) = deployment.pinned_to {
        cluster::remove_deployment(tx, id).await?;
        // Somebody may wait for a place under the cluster's limit.
        cluster::wake_placement(tx, id);
    }
    organization::remove_deployment(tx, deployment.organization_id).await?;
    append(tx, deployment, "deleted").await
}

/// Has the queues looked at that the deployment is in.
async fn wake_placement(tx: &mut Tx, owner: OrganizationId, on: Option<ClusterId>) -> Result<()> {
    match on {
        Some(id) => cluster::wake_placement(tx, id),
        None => cluster::wake_placement_of(tx, owner).await?,
    }
    Ok(())
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
    event::append(tx, Kind::Deployment, deployment.id, owner, change, &shown).await
}

pub(crate) fn from_row(mut row: Row) -> Result<Deployment> {
    Ok(Deployment {
        id: row.take()?,
        organization_id: row.take()?,
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
        desired: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
        started_at: row.take()?,
    })
}
