//! Records the reports of local and remote agents in the rows of the replicas.

use std::collections::{BTreeMap, HashSet};

use model::ClusterId;
use model::agent::{Observed, ReplicaId, Report};
use model::event::Actor;
use store::Db;
use store::deployment::reports;

/// Records an agent's reports, cluster by cluster. After an error the agent sends them again.
pub async fn record(db: &Db, reports: &[Report]) -> store::Result<()> {
    let mut by_cluster: BTreeMap<ClusterId, Vec<&Report>> = BTreeMap::new();
    for report in without_superseded(reports) {
        by_cluster.entry(report.cluster).or_default().push(report);
    }
    for (cluster, reports) in by_cluster {
        record_cluster(db, cluster, &reports).await?;
    }
    Ok(())
}

/// Drops `Starting` reports that a later report of the same generation supersedes.
fn without_superseded(reports: &[Report]) -> Vec<&Report> {
    let mut later: HashSet<(ReplicaId, i64)> = HashSet::new();
    let newest_first = reports.iter().rev().filter(|report| {
        let is_last = later.insert((report.replica, report.generation));
        is_last || report.observed != Observed::Starting
    });
    let mut kept: Vec<&Report> = newest_first.collect();
    kept.reverse();
    kept
}

/// Records the reports in one transaction. If that fails, records them one by one, so that an
/// invalid report does not block the others.
async fn record_cluster(db: &Db, cluster: ClusterId, reports: &[&Report]) -> store::Result<()> {
    match record_together(db, cluster, reports).await {
        Err(error) if !matches!(error, store::Error::Unavailable(_)) => {}
        other => return other,
    }
    for report in reports {
        match record_together(db, cluster, &[report]).await {
            Err(error @ store::Error::Unavailable(_)) => return Err(error),
            Err(error) => {
                tracing::error!(?report, %error, "invalid report skipped");
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

async fn record_together(db: &Db, cluster: ClusterId, reports: &[&Report]) -> store::Result<()> {
    let mut tx = db.begin(Actor::Agent).await?;
    store::cluster::lock(&mut tx, cluster).await?;
    // In the global lock order of rows; the stable sort keeps the reports of a replica in order.
    let mut reports = reports.to_vec();
    reports.sort_by_key(|report| report.replica);
    for report in reports {
        reports::record(&mut tx, report).await?;
    }
    tx.commit().await
}

#[cfg(test)]
mod tests {
    use model::{DeploymentId, Xid};

    use super::*;

    #[test]
    fn superseded_starting_reports_are_dropped() {
        let report = |number: u32, generation: i64, observed: Observed| Report {
            replica: ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 1)), number },
            cluster: ClusterId(Xid::new(1, [0; 5], 2)),
            generation,
            observed,
            tail: Vec::new(),
        };
        let running = || Observed::Running { endpoints: Vec::new() };
        let reports = [
            report(0, 1, Observed::Starting),
            report(1, 1, Observed::Starting),
            report(0, 1, running()),
            report(0, 2, Observed::Starting),
            report(0, 1, Observed::Gone),
        ];
        let kept: Vec<&Report> = without_superseded(&reports);
        assert_eq!(kept, [&reports[1], &reports[2], &reports[3], &reports[4]]);
    }
}
