//! Having replicas leave a cluster that works, so that they start elsewhere.

use model::deployment::Reason;
use model::replica::Replica;
use model::{ClusterId, DeploymentId, ReplicaId};

use super::placing::Standing;
use super::{placing, replica, take_if_there};
use crate::db::{params, sql};
use crate::{Read, Result, Tx, cluster};

/// Everything that has replicas on a cluster.
pub async fn on(read: &mut Read, on: ClusterId) -> Result<Standing> {
    let sql = sql!("SELECT DISTINCT deployment_id FROM replica WHERE cluster_id = $1 ORDER BY 1");
    let rows = read.all(sql, params![on]).await?;
    let ids: Result<Vec<DeploymentId>> = rows.into_iter().map(|mut row| row.take()).collect();
    placing::some(read, &ids?).await
}

/// Has a replica stop where it runs and wait for another place; whether it still ran there.
pub async fn leave(tx: &mut Tx, id: ReplicaId, on: ClusterId, reason: Reason) -> Result<bool> {
    cluster::lock(tx, on).await?;
    let Some(deployment) = take_if_there(tx, id.deployment).await? else { return Ok(false) };
    let mut replicas = replica::of(tx, id.deployment).await?;
    let is_there = |replica: &Replica| {
        replica.id == id
            && replica.status.is_wanted()
            && replica.place.as_ref().is_some_and(|place| place.cluster == on)
    };
    let Some(found) = replicas.iter().position(is_there) else { return Ok(false) };
    placing::displace(tx, &deployment, &mut replicas, found, reason).await?;
    Ok(true)
}
