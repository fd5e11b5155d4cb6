//! Draining: a cluster takes nothing new, and what is on it moves elsewhere.

use model::cluster::{Cluster, Status};

use super::{count_change, lock, note};
use crate::db::{params, sql};
use crate::deployment::reserving;
use crate::{Error, Result, Tx};

/// Has a cluster take nothing new from now on. Its worker has move what can.
pub async fn drain(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    if cluster.draining_at.is_some() {
        return Ok(cluster.clone());
    }
    if !matches!(cluster.status, Status::Ready | Status::WaitingForAgent | Status::Unreachable) {
        return Err(Error::Conflict(format!(
            "the cluster {} is {}: nothing is on it that could move",
            cluster.name, cluster.status
        )));
    }
    lock(tx, cluster.id).await?;
    reserving::give_up_all(tx, cluster.id).await?;
    let now = tx.now();
    let sql = sql!(
        "UPDATE cluster SET draining_at = $2, status_reason = CASE WHEN status = 'ready' ",
        "THEN $3 ELSE status_reason END WHERE id = $1"
    );
    let reason = "It is being drained and takes nothing new.";
    tx.run(sql, params![cluster.id, now, reason]).await?;
    count_change(tx, cluster.id).await?;
    note(tx, cluster.id, "draining").await
}

/// Has a cluster take what is new again. What has moved stays where it is.
pub async fn undrain(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    if cluster.draining_at.is_none() {
        return Ok(cluster.clone());
    }
    lock(tx, cluster.id).await?;
    let sql = sql!(
        "UPDATE cluster SET draining_at = NULL, status_reason = CASE WHEN status = 'ready' ",
        "THEN 'It can host.' ELSE status_reason END WHERE id = $1"
    );
    tx.run(sql, params![cluster.id]).await?;
    count_change(tx, cluster.id).await?;
    note(tx, cluster.id, "undrained").await
}
