//! Reports of agents, local and remote: what was observed of replicas is written to their rows.

use std::collections::{BTreeMap, HashSet};

use model::ClusterId;
use model::agent::{Observed, ReplicaId, Report};
use model::event::Actor;
use store::Db;
use store::deployment::reporting;

/// Records the reports of an agent, cluster by cluster. After an error the agent sends them again.
pub async fn record(db: &Db, reports: &[Report]) -> store::Result<()> {
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
