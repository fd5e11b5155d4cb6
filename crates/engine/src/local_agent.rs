//! The lease of the local agent: one server's agent at a time serves the clusters on this machine.

use std::time::Duration;

use base::Stop;
use model::event::Actor;
use store::{Db, lease};
use tokio::sync::watch;

/// Which replica's agent serves the clusters on "this machine".
pub const LEASE: &str = "agent/local";
const LEASE_LIFE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(3);

/// Keeps trying to be the one; tells when it is and when it is no more. Ends when told to stop.
pub async fn lead(db: Db, holder: String, leads: watch::Sender<bool>, mut stop: Stop) {
    while !stop.is_set() {
        let held = take(&db, &holder).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the lease of the local agent could not be renewed");
            false
        });
        if leads.send_if_modified(|leads| std::mem::replace(leads, held) != held) && held {
            wake_clusters(&db).await;
        }
        let _ = tokio::time::timeout(RENEW, stop.told()).await;
    }
    if let Err(error) = give_back(&db, &holder).await {
        tracing::debug!(%error, "the lease of the local agent runs out by itself");
    }
}

async fn take(db: &Db, holder: &str) -> store::Result<bool> {
    let mut tx = db.begin(Actor::Agent).await?;
    let fence = lease::take(&mut tx, LEASE, holder, LEASE_LIFE).await?;
    tx.commit().await?;
    Ok(fence.is_some())
}

async fn give_back(db: &Db, holder: &str) -> store::Result<()> {
    let mut tx = db.begin(Actor::Agent).await?;
    lease::give_back(&mut tx, LEASE, holder).await?;
    tx.commit().await
}

/// Clusters that wait for their agent have it now.
async fn wake_clusters(db: &Db) {
    let woken = async {
        let mut tx = db.begin(Actor::Agent).await?;
        store::resync::<model::cluster::Cluster>(&mut tx).await?;
        tx.commit().await
    };
    if let Err(error) = woken.await {
        let error: store::Error = error;
        tracing::warn!(%error, "clusters will notice their agent a little later");
    }
}
