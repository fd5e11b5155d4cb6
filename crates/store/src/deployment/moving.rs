//! Moves replicas off a ready cluster.

use model::deployment::Reason;
use model::replica::Replica;
use model::{ClusterId, DeploymentId, ReplicaId};

use super::placement::WithReplicas;
use super::{lock_if_exists, placement, replica};
use crate::db::{params, sql};
use crate::{Read, Result, Tx, cluster};

/// The deployments with replicas on a cluster.
pub async fn deployments_on(read: &mut Read, on: ClusterId) -> Result<WithReplicas> {
    let sql = sql!("SELECT DISTINCT deployment_id FROM replica WHERE cluster_id = $1 ORDER BY 1");
    let rows = read.all(sql, params![on]).await?;
    let ids: Result<Vec<DeploymentId>> = rows.into_iter().map(|mut row| row.take()).collect();
    placement::by_ids(read, &ids?).await
}

/// Stops a replica and queues it for another place. Returns whether it still ran there.
pub async fn move_away(tx: &mut Tx, id: ReplicaId, on: ClusterId, reason: Reason) -> Result<bool> {
    cluster::lock(tx, on).await?;
    let Some(deployment) = lock_if_exists(tx, id.deployment).await? else { return Ok(false) };
    let mut replicas = replica::list(tx, id.deployment).await?;
    let is_there = |replica: &Replica| {
        replica.id == id
            && replica.status.is_placed()
            && replica.place.as_ref().is_some_and(|place| place.cluster == on)
    };
    let Some(found) = replicas.iter().position(is_there) else { return Ok(false) };
    placement::preempt_replica(tx, &deployment, &mut replicas, found, reason).await?;
    Ok(true)
}
