//! Giving deployments a cluster's capacity, and taking it away.

use model::ClusterId;
use model::DeploymentId;
use model::cluster::Cluster;
use model::deployment::{Deployment, Status};

use super::{columns, from_row, note};
use crate::db::{Select, params, sql};
use crate::{Error, Read, Result, Tx, capacity, cluster};

/// How much of a queue one look takes in; what is further down has its turn when these have moved.
pub const LOOK: i64 = 500;

/// Who waits for this cluster, first in line first: those pinned to it, and those that may run on
/// any cluster their owner can use.
pub async fn waiting(read: &mut Read, on: &Cluster) -> Result<Vec<Deployment>> {
    let base = concat!(
        "SELECT ",
        columns!(),
        " FROM deployment WHERE placed_on IS NULL AND deleted_at IS NULL",
        " AND status IN ('queued', 'preempted')"
    );
    let order = "ORDER BY priority DESC, created_at, id LIMIT ?";
    let pinned = Select::new(base).and("pinned_to = ?", Some(&on.id)).then(order, &LOOK);
    let mut rows = pinned.all(read).await?;
    let roaming = Select::new(base)
        .text(" AND pinned_to IS NULL")
        .and("organization_id = ?", on.organization_id.as_ref())
        .then(order, &LOOK);
    rows.extend(roaming.all(read).await?);
    rows.into_iter().map(from_row).collect()
}

/// Who holds capacity of this cluster.
pub async fn holding(read: &mut Read, on: ClusterId) -> Result<Vec<Deployment>> {
    let sql = sql!("SELECT ", columns!(), " FROM deployment WHERE placed_on = $1");
    read.all(sql, params![on]).await?.into_iter().map(from_row).collect()
}

/// Gives a waiting deployment its cluster: capacity, count and status, all or nothing.
///
/// One that only holds capacity runs from here on; for the others the agent takes over.
pub async fn place(
    tx: &mut Tx,
    deployment: &Deployment,
    on: &Cluster,
    limit_per_cluster: i64,
) -> Result<Deployment> {
    let now = tx.now();
    let placed = tx
        .run(
            sql!(
                "UPDATE deployment SET placed_on = $2, status = 'scheduled', status_reason = $3, ",
                "desired = desired + 1, answered = CASE WHEN image IS NULL THEN desired + 1 ",
                "ELSE answered END, updated_at = $4 WHERE id = $1 AND placed_on IS NULL ",
                "AND deleted_at IS NULL AND status IN ('queued', 'preempted')"
            ),
            params![deployment.id, on.id, format!("Has its place on {}.", on.name), now],
        )
        .await?;
    if placed == 0 {
        return Err(Error::Conflict(format!("{} does not wait any more", deployment.id)));
    }
    if deployment.pinned_to.is_none() {
        cluster::add_deployment(tx, on.id, limit_per_cluster).await?;
    }
    capacity::reserve(tx, on.id, &deployment.spec.request()).await?;
    let placed = note(tx, deployment.id, Status::Scheduled.as_str()).await?;
    if placed.spec.image.is_some() {
        return Ok(placed);
    }
    tx.run(
        sql!(
            "UPDATE deployment SET status = 'running', status_reason = $2, started_at = $3 WHERE id = $1"
        ),
        params![deployment.id, format!("Holds its capacity on {}.", on.name), now],
    )
    .await?;
    note(tx, deployment.id, Status::Running.as_str()).await
}

/// Has a deployment yield to another, if that one still waits. Its capacity is free when it has
/// stopped.
pub async fn preempt(
    tx: &mut Tx,
    victim: DeploymentId,
    by: DeploymentId,
    reason: &str,
) -> Result<()> {
    let now = tx.now();
    let row = tx
        .first(
            sql!(
                "UPDATE deployment SET status = 'preempted', status_reason = $2, updated_at = $3, ",
                "desired = desired + 1, answered = CASE WHEN image IS NULL THEN desired + 1 ",
                "ELSE answered END WHERE id = $1 AND placed_on IS NOT NULL ",
                "AND status IN ('scheduled', 'starting', 'running') ",
                // Another cluster may have taken it meanwhile.
                "AND EXISTS (SELECT 1 FROM deployment w WHERE w.id = $4 AND w.placed_on IS NULL ",
                "AND w.deleted_at IS NULL AND w.status IN ('queued', 'preempted')) RETURNING ",
                columns!()
            ),
            params![victim, reason, now, by],
        )
        .await?;
    let Some(row) = row else {
        return Err(Error::Conflict(format!(
            "{victim} does not run any more, or {by} does not wait any more"
        )));
    };
    let victim = from_row(row)?;
    note(tx, victim.id, Status::Preempted.as_str()).await?;
    if victim.spec.image.is_none() {
        unplace(tx, &victim).await?;
    }
    Ok(())
}

/// Takes a deployment's capacity back: nothing of it is left on the cluster.
pub(crate) async fn unplace(tx: &mut Tx, deployment: &Deployment) -> Result<Deployment> {
    let Some(on) = deployment.placed_on else { return Ok(deployment.clone()) };
    let now = tx.now();
    let freed = tx
        .run(
            sql!(
                "UPDATE deployment SET placed_on = NULL, node = NULL, endpoints = '[]', ",
                "started_at = NULL, updated_at = $3 WHERE id = $1 AND placed_on = $2"
            ),
            params![deployment.id, on, now],
        )
        .await?;
    if freed == 0 {
        return Err(Error::Conflict(format!("{} was freed already", deployment.id)));
    }
    if deployment.pinned_to.is_none() {
        cluster::remove_deployment(tx, on).await?;
    }
    capacity::release(tx, on, &deployment.spec.request()).await?;
    cluster::wake_placement(tx, on);
    if deployment.status == Status::Preempted && deployment.pinned_to.is_none() {
        cluster::wake_placement_of(tx, deployment.organization_id).await?;
    }
    super::get(tx, crate::Scope::All, deployment.id).await
}

/// Says why a deployment waits, if that is news.
pub async fn set_reason(tx: &mut Tx, deployment: &Deployment, reason: &str) -> Result<()> {
    if deployment.status_reason == reason {
        return Ok(());
    }
    let now = tx.now();
    let changed = tx
        .run(
            sql!(
                "UPDATE deployment SET status_reason = $2, updated_at = $3 WHERE id = $1 ",
                "AND placed_on IS NULL AND deleted_at IS NULL AND status IN ('queued', 'preempted')"
            ),
            params![deployment.id, reason, now],
        )
        .await?;
    if changed == 1 {
        note(tx, deployment.id, "waiting").await?;
    }
    Ok(())
}
