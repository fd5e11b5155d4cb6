//! The control plane's side of the agent inside the server: what it shall do, what it says.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use base::Stop;
use model::ClusterId;
use model::agent::{Desired, Observed, ReplicaId, Report};
use model::cluster::Provider;
use model::event::Actor;
use store::deployment::reporting::{self, Served};
use store::{Db, lease};
use tokio::sync::watch;

/// Which replica's agent serves the clusters on "this machine".
pub const LEASE: &str = "agent/local";
const LEASE_LIFE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(3);

/// What the agent shall do: all of it, or only what it has not answered yet.
pub async fn desired(db: &Db, provider: Provider, all: bool) -> store::Result<Vec<Desired>> {
    reporting::desired(&mut db.read().await?, Served::Provider(provider), all).await
}

/// Takes in what the agent says, cluster by cluster. An error means that it shall try again.
pub async fn report(db: &Db, reports: &[Report]) -> store::Result<()> {
    let mut by_cluster: BTreeMap<ClusterId, Vec<&Report>> = BTreeMap::new();
    for report in up_to_date(reports) {
        by_cluster.entry(report.cluster).or_default().push(report);
    }
    for (cluster, reports) in by_cluster {
        report_of(db, cluster, &reports).await?;
    }
    Ok(())
}

/// The reports without those that say that something starts, if another says how that went.
fn up_to_date(reports: &[Report]) -> Vec<&Report> {
    let mut later: HashSet<(ReplicaId, i64)> = HashSet::new();
    let newest_first = reports.iter().rev().filter(|report| {
        let is_last = later.insert((report.replica, report.generation));
        is_last || report.observed != Observed::Starting
    });
    let mut kept: Vec<&Report> = newest_first.collect();
    kept.reverse();
    kept
}

/// Together if that works, else one by one, so that a report that makes no sense does not keep the
/// others out.
async fn report_of(db: &Db, cluster: ClusterId, reports: &[&Report]) -> store::Result<()> {
    match report_together(db, cluster, reports).await {
        Err(error) if !matches!(error, store::Error::Unavailable(_)) => {}
        other => return other,
    }
    for report in reports {
        match report_together(db, cluster, &[report]).await {
            Err(error @ store::Error::Unavailable(_)) => return Err(error),
            Err(error) => {
                tracing::error!(?report, %error, "a report makes no sense and is left out");
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

async fn report_together(db: &Db, cluster: ClusterId, reports: &[&Report]) -> store::Result<()> {
    let mut tx = db.begin(Actor::Agent).await?;
    store::cluster::lock(&mut tx, cluster).await?;
    // In the order in which rows are locked everywhere; what is said of one replica stays in order.
    let mut reports = reports.to_vec();
    reports.sort_by_key(|report| report.replica);
    for report in reports {
        reporting::report(&mut tx, report).await?;
    }
    tx.commit().await
}

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

#[cfg(test)]
mod tests {
    use model::{DeploymentId, Xid};

    use super::*;

    #[test]
    fn that_it_starts_is_left_out_if_more_is_known() {
        let report = |number: u32, generation: i64, observed: Observed| Report {
            replica: ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 1)), number },
            cluster: ClusterId(Xid::new(1, [0; 5], 2)),
            generation,
            observed,
            tail: Vec::new(),
        };
        let running = || Observed::Running { endpoints: Vec::new() };
        let said = [
            report(0, 1, Observed::Starting),
            report(1, 1, Observed::Starting),
            report(0, 1, running()),
            report(0, 2, Observed::Starting),
            report(0, 1, Observed::Gone),
        ];
        let kept: Vec<&Report> = up_to_date(&said);
        assert_eq!(kept, [&said[1], &said[2], &said[3], &said[4]]);
    }
}
