//! Draining: a cluster gets no new replicas, and existing ones move elsewhere.

use model::Time;
use model::cluster::{Cluster, Reason, Status};

use super::{lock, lock_and_get, save};
use crate::deployment::reserving;
use crate::{Error, Result, Tx};

/// Drains a cluster: it gets no new replicas. Its worker moves the existing ones.
pub async fn drain(tx: &mut Tx, cluster: &Cluster) -> Result<Cluster> {
    if cluster.draining_at.is_some() {
        return Ok(cluster.clone());
    }
    if !matches!(cluster.status, Status::Ready | Status::WaitingForAgent | Status::Unreachable) {
        return Err(Error::Conflict(format!(
            "cluster {} is {}: it has no replicas to drain",
            cluster.name, cluster.status
        )));
    }
    lock(tx, cluster.id).await?;
    reserving::release_all(tx, cluster.id).await?;
    let at = Some(tx.now());
    let reason = Reason::Draining { moving: 0, without_capacity: 0, pinned: 0, third_party: 0 };
    set(tx, cluster, at, reason, "draining").await
}

/// Ends a drain: the cluster gets new replicas again. Moved replicas stay where they are.
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
    let mut now = lock_and_get(tx, cluster.id).await?;
    now.draining_at = draining_at;
    now.generation += 1;
    if now.status == Status::Ready {
        now.reason = reason;
    }
    save(tx, &mut now, change).await?;
    Ok(now)
}
