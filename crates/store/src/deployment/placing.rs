//! Giving replicas capacity, taking it away, and what a decision about that has to know.

use model::deployment::{Deployment, Reason, Status};
use model::replica::Replica;
use model::{DeploymentId, OrganizationId, Place, ReplicaId, Time};

use super::{columns, replica, take_if_there};
use crate::db::{Select, batches, params, sql};
use crate::status::{Agent, Change, settle, transition_replicas};
use crate::subject::Subject as _;
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
        deployments.extend(Deployment::from_rows(rows));
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
/// One that only reserves capacity runs from here on; for the others the agent takes over. `clusters` are
/// the names of their clusters. The locks of the clusters must be held.
pub async fn place(
    tx: &mut Tx,
    id: DeploymentId,
    places: &[(u32, Place)],
    clusters: &[String],
) -> Result<Deployment> {
    let deployment = decided(tx, id).await?;
    let mut replicas = replica::of(tx, id).await?;
    for (number, place) in places {
        let found = replicas.iter_mut().find(|replica| replica.id.number == *number);
        let Some(replica) = found.filter(|r| r.status.is_waiting() && r.place.is_none()) else {
            tx.poison();
            return Err(Error::Conflict(format!("{id}/{number} does not wait any more")));
        };
        replica::arrive(tx, &deployment, replica, place, clusters).await?;
    }
    // What only holds capacity for an instance has one step less to tell of.
    let scheduled = match deployment.instance_id {
        Some(_) if deployment.spec.image.is_none() => deployment,
        _ => settle(tx, &deployment, &replicas, Status::Scheduled.as_str()).await?,
    };
    if scheduled.spec.image.is_some() {
        return Ok(scheduled);
    }
    let waiting = replicas.iter_mut().filter(|replica| replica.status == Status::Scheduled);
    let reason = Reason::ReservesCapacity { cluster: Some(clusters.join(", ")) };
    let change = Change::new(Status::Running, reason, Agent::Unconcerned);
    transition_replicas(tx, waiting, &change).await?;
    super::plan_end(tx, &scheduled);
    settle(tx, &scheduled, &replicas, Status::Running.as_str()).await
}

/// The deployment that a decision is about; it may be gone since.
async fn decided(tx: &mut Tx, id: DeploymentId) -> Result<Deployment> {
    take_if_there(tx, id).await?.ok_or_else(|| Error::Conflict(format!("{id} is gone")))
}

/// Has replicas yield to another, if that one still waits. Their capacity is free when they have
/// stopped. The locks of their clusters must be held.
pub async fn preempt(tx: &mut Tx, victim: ReplicaId, by: ReplicaId, reason: Reason) -> Result<()> {
    let deployment = decided(tx, victim.deployment).await?;
    if deployment.instance_id.is_some() {
        return Err(Error::Conflict(format!(
            "{victim} belongs to an instance, which never yields"
        )));
    }
    let mut replicas = replica::of(tx, victim.deployment).await?;
    let is_it = |r: &Replica| r.id == victim && r.status.is_wanted() && r.place.is_some();
    let Some(found) = replicas.iter().position(is_it) else {
        return Err(Error::Conflict(format!("{victim} does not run any more")));
    };
    let Some(owner) = waiting_owner(tx, by).await? else {
        return Err(Error::Conflict(format!("{by} does not wait any more")));
    };
    // What only holds room is there to yield: that counts against nobody.
    if deployment.reserved.is_none() {
        let now = tx.now();
        count(tx, now, owner, by, victim).await?;
    }
    displace(tx, &deployment, &mut replicas, found, reason).await
}

/// Has a replica give up its place. What has no program is gone from there at once.
pub(super) async fn displace(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &mut [Replica],
    found: usize,
    reason: Reason,
) -> Result<()> {
    let change = Change::new(Status::Preempted, reason, Agent::of(deployment));
    transition_replicas(tx, [&mut replicas[found]], &change).await?;
    let now = settle(tx, deployment, replicas, Status::Preempted.as_str()).await?;
    if change.agent == Agent::Absent {
        replica::leave(tx, &now, &mut replicas[found]).await?;
        settle(tx, &now, replicas, STOPPED).await?;
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
pub async fn set_reason(tx: &mut Tx, id: DeploymentId, reason: &Reason) -> Result<()> {
    let deployment = decided(tx, id).await?;
    let mut replicas = replica::of(tx, id).await?;
    let is_news =
        |r: &&mut Replica| r.status == Status::Queued && r.place.is_none() && r.reason != *reason;
    let waiting: Vec<&mut Replica> = replicas.iter_mut().filter(is_news).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let change = Change::new(Status::Queued, reason.clone(), Agent::Unconcerned);
    transition_replicas(tx, waiting, &change).await?;
    settle(tx, &deployment, &replicas, "waiting").await.map(drop)
}
