//! Giving replicas capacity, taking it away, and what a decision about that has to know.

use model::deployment::{Deployment, Status};
use model::replica::Replica;
use model::{DeploymentId, OrganizationId, Place, ReplicaId, Time};

use super::{columns, from_row, replica, take_if_there};
use crate::db::{Select, batches, params, readable, sql};
use crate::{Error, Page, Read, Result, Scope, Tx};

/// Deployments with their replicas, as placement sees them.
pub type Standing = Vec<(Deployment, Vec<Replica>)>;

/// A part of all deployments, by id.
pub async fn all(read: &mut Read, page: &Page) -> Result<Standing> {
    let filter = super::Filter { with_instances: true, ..super::Filter::default() };
    let deployments = super::list(read, Scope::All, &filter, page).await?;
    with_replicas(read, deployments).await
}

/// These deployments, as far as they exist.
pub async fn some(read: &mut Read, ids: &[DeploymentId]) -> Result<Standing> {
    let mut deployments = Vec::new();
    for ids in batches(ids) {
        let select =
            concat!("SELECT ", columns!(), " FROM deployment WHERE deleted_at IS NULL AND ");
        let rows = Select::new(select).one_of("id", &ids).all(read).await?;
        deployments.extend(readable(rows, from_row));
    }
    with_replicas(read, deployments).await
}

async fn with_replicas(read: &mut Read, deployments: Vec<Deployment>) -> Result<Standing> {
    let ids: Vec<DeploymentId> = deployments.iter().map(|deployment| deployment.id).collect();
    let mut replicas = replica::of_all(read, &ids).await?;
    replicas.sort_by_key(|replica| replica.id);
    let standing = deployments.into_iter().map(|deployment| {
        let from = replicas.partition_point(|replica| replica.id.deployment < deployment.id);
        let own = replicas[from..].iter().take_while(|r| r.id.deployment == deployment.id);
        let own = own.cloned().collect();
        (deployment, own)
    });
    Ok(standing.collect())
}

/// Gives waiting replicas of one deployment their places: all of them, or an error and the
/// transaction can't be committed.
///
/// One that only holds capacity runs from here on; for the others the agent takes over. `on` is what
/// users call where that is. The locks of the clusters must be held.
pub async fn place(
    tx: &mut Tx,
    id: DeploymentId,
    places: &[(u32, Place)],
    on: &str,
) -> Result<Deployment> {
    let deployment = decided(tx, id).await?;
    let reason = format!("Has its place on {on}.");
    for (number, place) in places {
        let id = ReplicaId { deployment: id, number: *number };
        replica::arrive(tx, &deployment, id, place, &reason).await?;
    }
    // What only holds capacity for an instance has one step less to tell of.
    let scheduled = match deployment.instance_id {
        Some(_) if deployment.spec.image.is_none() => deployment,
        _ => replica::settle(tx, &deployment, Status::Scheduled.as_str()).await?,
    };
    if scheduled.spec.image.is_some() {
        return Ok(scheduled);
    }
    let now = tx.now();
    tx.run(
        sql!(
            "UPDATE replica SET status = 'running', status_reason = $2, started_at = $3 ",
            "WHERE deployment_id = $1 AND status = 'scheduled'"
        ),
        params![id, format!("Holds its capacity on {on}."), now],
    )
    .await?;
    super::plan_end(tx, &scheduled);
    replica::settle(tx, &scheduled, Status::Running.as_str()).await
}

/// The deployment that a decision is about; it may be gone since.
async fn decided(tx: &mut Tx, id: DeploymentId) -> Result<Deployment> {
    take_if_there(tx, id).await?.ok_or_else(|| Error::Conflict(format!("{id} is gone")))
}

/// Has replicas yield to another, if that one still waits. Their capacity is free when they have
/// stopped. The locks of their clusters must be held.
pub async fn preempt(tx: &mut Tx, victim: ReplicaId, by: ReplicaId, reason: &str) -> Result<()> {
    let deployment = decided(tx, victim.deployment).await?;
    if deployment.instance_id.is_some() {
        return Err(Error::Conflict(format!(
            "{victim} belongs to an instance, which never yields"
        )));
    }
    let replicas = replica::of(tx, victim.deployment).await?;
    let found = replicas.into_iter().find(|replica| replica.id == victim);
    let Some(found) = found.filter(|r| r.status.is_wanted() && r.place.is_some()) else {
        return Err(Error::Conflict(format!("{victim} does not run any more")));
    };
    let Some(owner) = waiting_owner(tx, by).await? else {
        return Err(Error::Conflict(format!("{by} does not wait any more")));
    };
    let (now, has_image) = (tx.now(), deployment.spec.image.is_some());
    replica::tell(tx, victim, Status::Preempted, reason, has_image).await?;
    // What only holds room is there to yield: that counts against nobody.
    if deployment.reserved.is_none() {
        count(tx, now, owner, by, victim).await?;
    }
    let deployment = replica::settle(tx, &deployment, Status::Preempted.as_str()).await?;
    if !has_image {
        replica::leave(tx, &deployment, &found).await?;
        replica::settle(tx, &deployment, STOPPED).await?;
    }
    Ok(())
}

async fn count(
    tx: &mut Tx,
    now: Time,
    owner: OrganizationId,
    by: ReplicaId,
    victim: ReplicaId,
) -> Result<()> {
    tx.run(
        sql!(
            "INSERT INTO preemption (at, organization_id, deployment_id, victim_id) ",
            "VALUES ($1, $2, $3, $4)"
        ),
        params![now, owner, by.deployment, victim.deployment],
    )
    .await
    .map(drop)
}

/// The change that gives capacity back.
pub(super) const STOPPED: &str = "stopped";

/// Who owns a replica that waits.
async fn waiting_owner(read: &mut Read, id: ReplicaId) -> Result<Option<OrganizationId>> {
    let sql = sql!(
        "SELECT d.organization_id FROM deployment d JOIN replica r ON r.deployment_id = d.id ",
        "WHERE d.id = $1 AND r.number = $2 AND r.cluster_id IS NULL AND d.deleted_at IS NULL ",
        "AND r.status IN ('queued', 'preempted')"
    );
    let row = read.first(sql, params![id.deployment, i64::from(id.number)]).await?;
    row.map(|mut row| row.take()).transpose()
}

/// Who has had others yield since then, and when.
pub async fn preemptions(read: &mut Read, since: Time) -> Result<Vec<(OrganizationId, Time)>> {
    let sql = sql!("SELECT organization_id, at FROM preemption WHERE at > $1 ORDER BY at");
    let rows = read.all(sql, params![since]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Forgets preemptions that count no more.
pub async fn forget_preemptions(tx: &mut Tx, before: Time) -> Result<()> {
    tx.run(sql!("DELETE FROM preemption WHERE at <= $1"), params![before]).await.map(drop)
}

/// Says why the waiting replicas of a deployment wait, if that is news.
pub async fn set_reason(tx: &mut Tx, id: DeploymentId, reason: &str) -> Result<()> {
    let deployment = decided(tx, id).await?;
    let changed = tx
        .run(
            sql!(
                "UPDATE replica SET status_reason = $2 WHERE deployment_id = $1 ",
                "AND cluster_id IS NULL AND status = 'queued' AND status_reason <> $2"
            ),
            params![id, reason],
        )
        .await?;
    if changed > 0 {
        replica::settle(tx, &deployment, "waiting").await?;
    }
    Ok(())
}
