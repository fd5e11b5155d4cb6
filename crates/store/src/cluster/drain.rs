//! Draining: a cluster takes nothing new, and what is on it moves elsewhere.

use model::Time;
use model::cluster::{Cluster, Reason, Status};

use super::{lock, save, take_lock};
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
    let at = Some(tx.now());
    let reason = Reason::Draining { moving: 0, without_capacity: 0, pinned: 0, third_party: 0 };
    set(tx, cluster, at, reason, "draining").await
}

/// Has a cluster take what is new again. What has moved stays where it is.
pub async fn undrain(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    if cluster.draining_at.is_none() {
        return Ok(cluster.clone());
    }
    set(tx, cluster, None, Reason::AsExpected, "undrained").await
}

async fn set(
    tx: &mut Tx,
    cluster: &Cluster,
    draining_at: Option<Time>,
    reason: Reason,
    change: &str,
) -> Result<Cluster> {
    let mut now = take_lock(tx, cluster.id).await?;
    now.draining_at = draining_at;
    now.generation += 1;
    if now.status == Status::Ready {
        now.reason = reason;
    }
    save(tx, &mut now, change).await?;
    Ok(now)
}
