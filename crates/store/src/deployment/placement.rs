//! Placement and preemption of replicas, and the data that the decisions need.

use model::deployment::{Deployment, Reason, Status};
use model::replica::Replica;
use model::{DeploymentId, OrganizationId, Place, ReplicaId, Time};

use super::{columns, lock_if_exists, replica};
use crate::db::{Select, batches, params, sql};
use crate::status::{Agent, Change, summarize, transition_replicas};
use crate::subject::Subject as _;
use crate::{Error, Page, Read, Result, Scope, Tx};

/// Deployments with their replicas, as placement needs them.
pub type WithReplicas = Vec<(Deployment, Vec<Replica>)>;

/// A page of all deployments, by id.
pub async fn list(read: &mut Read, page: &Page) -> Result<WithReplicas> {
    let filter = super::Filter { with_instances: true, ..super::Filter::default() };
    let deployments = super::list(read, Scope::All, &filter, page).await?;
    with_replicas(read, deployments).await
}

/// These deployments, as far as they exist.
pub async fn by_ids(read: &mut Read, ids: &[DeploymentId]) -> Result<WithReplicas> {
    let mut deployments = Vec::new();
    for ids in batches(ids) {
        let select =
            concat!("SELECT ", columns!(), " FROM deployment WHERE deleted_at IS NULL AND ");
        let rows = Select::new(select).one_of("id", &ids).all(read).await?;
        deployments.extend(Deployment::from_rows(rows));
    }
    with_replicas(read, deployments).await
}

async fn with_replicas(read: &mut Read, deployments: Vec<Deployment>) -> Result<WithReplicas> {
    let ids: Vec<DeploymentId> = deployments.iter().map(|deployment| deployment.id).collect();
    let mut replicas = replica::list_of_deployments(read, &ids).await?;
    replicas.sort_by_key(|replica| replica.id);
    let with_replicas = deployments.into_iter().map(|deployment| {
        let from = replicas.partition_point(|replica| replica.id.deployment < deployment.id);
        let own = replicas[from..].iter().take_while(|r| r.id.deployment == deployment.id);
        let own = own.cloned().collect();
        (deployment, own)
    });
    Ok(with_replicas.collect())
}

/// Places pending replicas of a deployment: all of them, or an error that prevents the commit.
///
/// A replica that only reserves capacity is running then; for others the agent takes over.
/// `clusters` are the names of their clusters. The clusters must be locked.
pub async fn place(
    tx: &mut Tx,
    id: DeploymentId,
    places: &[(u32, Place)],
    clusters: &[String],
) -> Result<Deployment> {
    let deployment = lock_decided(tx, id).await?;
    let mut replicas = replica::list(tx, id).await?;
    for (number, place) in places {
        let found = replicas.iter_mut().find(|replica| replica.id.number == *number);
        let Some(replica) = found.filter(|r| r.status.is_pending() && r.place.is_none()) else {
            tx.poison();
            return Err(Error::Conflict(format!("{id}/{number} is no longer pending")));
        };
        replica::place(tx, &deployment, replica, place, clusters).await?;
    }
    // A reservation for an instance has no separate scheduled event.
    let scheduled = match deployment.instance_id {
        Some(_) if deployment.spec.image.is_none() => deployment,
        _ => summarize(tx, &deployment, &replicas, Status::Scheduled.as_str()).await?,
    };
    if scheduled.spec.image.is_some() {
        return Ok(scheduled);
    }
    let waiting = replicas.iter_mut().filter(|replica| replica.status == Status::Scheduled);
    let reason = Reason::ReservesCapacity { cluster: Some(clusters.join(", ")) };
    let change = Change::new(Status::Running, reason, Agent::Unaffected);
    transition_replicas(tx, waiting, &change).await?;
    super::plan_end(tx, &scheduled);
    summarize(tx, &scheduled, &replicas, Status::Running.as_str()).await
}

/// Locks the deployment of a decision; it may have been deleted since.
async fn lock_decided(tx: &mut Tx, id: DeploymentId) -> Result<Deployment> {
    lock_if_exists(tx, id)
        .await?
        .ok_or_else(|| Error::Conflict(format!("{id} does not exist any more")))
}

/// Preempts a replica for another one that is still pending. Its capacity is released when it has
/// stopped. The clusters must be locked.
pub async fn preempt(tx: &mut Tx, victim: ReplicaId, by: ReplicaId, reason: Reason) -> Result<()> {
    let deployment = lock_decided(tx, victim.deployment).await?;
    if deployment.instance_id.is_some() {
        return Err(Error::Conflict(format!(
            "{victim} belongs to an instance and can't be preempted"
        )));
    }
    let mut replicas = replica::list(tx, victim.deployment).await?;
    let is_victim = |r: &Replica| r.id == victim && r.status.is_placed() && r.place.is_some();
    let Some(found) = replicas.iter().position(is_victim) else {
        return Err(Error::Conflict(format!("{victim} is no longer placed")));
    };
    let Some(owner) = waiting_owner(tx, by).await? else {
        return Err(Error::Conflict(format!("{by} is no longer pending")));
    };
    // Reservations exist to be preempted: they cost no budget.
    if deployment.reserved.is_none() {
        let now = tx.now();
        record_preemption(tx, now, owner, by, victim).await?;
    }
    preempt_replica(tx, &deployment, &mut replicas, found, reason).await
}

/// Takes a replica's place away. A replica without workload releases it immediately.
pub(super) async fn preempt_replica(
    tx: &mut Tx,
    deployment: &Deployment,
    replicas: &mut [Replica],
    found: usize,
    reason: Reason,
) -> Result<()> {
    let change = Change::new(Status::Preempted, reason, Agent::for_deployment(deployment));
    transition_replicas(tx, [&mut replicas[found]], &change).await?;
    let now = summarize(tx, deployment, replicas, Status::Preempted.as_str()).await?;
    if change.agent == Agent::Absent {
        replica::release(tx, &now, &mut replicas[found]).await?;
        summarize(tx, &now, replicas, STOPPED).await?;
    }
    Ok(())
}

async fn record_preemption(
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

/// The change that releases capacity.
pub(super) const STOPPED: &str = "stopped";

/// The owner of a pending replica.
async fn waiting_owner(read: &mut Read, id: ReplicaId) -> Result<Option<OrganizationId>> {
    let sql = sql!(
        "SELECT d.organization_id FROM deployment d JOIN replica r ON r.deployment_id = d.id ",
        "WHERE d.id = $1 AND r.number = $2 AND r.cluster_id IS NULL AND d.deleted_at IS NULL ",
        "AND r.status IN ('queued', 'preempted')"
    );
    let row = read.first(sql, params![id.deployment, i64::from(id.number)]).await?;
    row.map(|mut row| row.take()).transpose()
}

/// The preemptions since then: organization and time.
pub async fn preemptions(read: &mut Read, since: Time) -> Result<Vec<(OrganizationId, Time)>> {
    let sql = sql!("SELECT organization_id, at FROM preemption WHERE at > $1 ORDER BY at");
    let rows = read.all(sql, params![since]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Deletes old preemption records.
pub async fn delete_preemptions(tx: &mut Tx, before: Time) -> Result<()> {
    tx.run(sql!("DELETE FROM preemption WHERE at <= $1"), params![before]).await.map(drop)
}

/// Sets the reason of a deployment's pending replicas, if it changed.
pub async fn set_reason(tx: &mut Tx, id: DeploymentId, reason: &Reason) -> Result<()> {
    let deployment = lock_decided(tx, id).await?;
    let mut replicas = replica::list(tx, id).await?;
    let is_outdated =
        |r: &&mut Replica| r.status == Status::Queued && r.place.is_none() && r.reason != *reason;
    let waiting: Vec<&mut Replica> = replicas.iter_mut().filter(is_outdated).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let change = Change::new(Status::Queued, reason.clone(), Agent::Unaffected);
    transition_replicas(tx, waiting, &change).await?;
    summarize(tx, &deployment, &replicas, "waiting").await.map(drop)
}
