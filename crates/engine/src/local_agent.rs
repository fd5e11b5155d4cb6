//! Leader election of local agents: one server's agent serves the clusters of provider `local`.

use std::time::Duration;

use base::Stop;
use model::event::Actor;
use store::{Db, lease};
use tokio::sync::watch;

/// Name of the lease.
pub const LEASE: &str = "agent/local";
const LEASE_LIFE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(3);

/// Acquires and renews the lease until stopped; `leads` tells whether this server holds it.
pub async fn run_election(db: Db, holder: String, leads: watch::Sender<bool>, mut stop: Stop) {
    while !stop.is_set() {
        let held = acquire(&db, &holder).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "renewing the local agent's lease failed");
            false
        });
        if leads.send_if_modified(|leads| std::mem::replace(leads, held) != held) && held {
            wake_clusters(&db).await;
        }
        let _ = tokio::time::timeout(RENEW, stop.signalled()).await;
    }
    if let Err(error) = release(&db, &holder).await {
        tracing::debug!(%error, "releasing the local agent's lease failed, it will expire");
    }
}

async fn acquire(db: &Db, holder: &str) -> store::Result<bool> {
    let mut tx = db.begin(Actor::Agent).await?;
    let fence = lease::acquire(&mut tx, LEASE, holder, LEASE_LIFE).await?;
    tx.commit().await?;
    Ok(fence.is_some())
}

async fn release(db: &Db, holder: &str) -> store::Result<()> {
    let mut tx = db.begin(Actor::Agent).await?;
    lease::release(&mut tx, LEASE, holder).await?;
    tx.commit().await
}

/// Reconciles clusters that wait for their agent.
async fn wake_clusters(db: &Db) {
    let woken = async {
        let mut tx = db.begin(Actor::Agent).await?;
        store::resync::<model::cluster::Cluster>(&mut tx).await?;
        tx.commit().await
    };
    if let Err(error) = woken.await {
        let error: store::Error = error;
        tracing::warn!(%error, "waking clusters failed, waiting for the next resync");
    }
}
