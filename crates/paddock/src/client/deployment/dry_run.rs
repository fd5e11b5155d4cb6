//! Output of `--dry-run`: the expected placement of each replica.

use model::{ClusterId, DeploymentId};
use wire::explain::{DryRun, ReplicaDryRun};
use wire::quota::QuotaExceeded;

use super::super::error::Error;
use super::super::format;
use super::super::http::{Api, ApiResponse};
use super::super::names::Names;
use super::super::print::Printer;
use super::super::table::Table;
use super::why::{self, units};

/// Prints the server's response to a dry run.
pub(super) async fn print(
    api: &Api,
    printer: &mut Printer,
    response: &ApiResponse,
) -> Result<(), Error> {
    if printer.is_json() {
        return printer.text(&response.body);
    }
    let dry_run: DryRun = api.read(response)?;
    let clusters = dry_run.replicas.iter().flat_map(clusters);
    let deployments = dry_run.replicas.iter().flat_map(deployments);
    let names = Names::look_up(api, clusters, deployments).await;
    printer.text(&table(&dry_run, &names))?;
    for exceeded in &dry_run.exceeded_quotas {
        printer.note(&refusal(exceeded));
    }
    printer.note("dry run: no changes made");
    Ok(())
}

/// Why the deployment would be refused.
fn refusal(exceeded: &QuotaExceeded) -> String {
    let QuotaExceeded { kind, used, requested, limit } = exceeded;
    format!(
        "the deployment would be refused: quota of {kind} exceeded: {} of {} in use, {} requested",
        used.to_short_string(),
        limit.to_short_string(),
        requested.to_short_string()
    )
}

fn table(dry_run: &DryRun, names: &Names) -> String {
    let header = ["REPLICA", "OUTCOME", "CLUSTER", "NODE", "VICTIMS", "WHY"];
    let rows = dry_run.replicas.iter();
    rows.fold(Table::new(&header), |table, replica| table.row(row(replica, names))).render()
}

fn row(replica: &ReplicaDryRun, names: &Names) -> [String; 6] {
    [
        replica.number.to_string(),
        outcome(replica),
        replica.cluster_id.map(|id| names.get(id)).unwrap_or_default(),
        format::optional(replica.node.as_ref()),
        units(&replica.victims, replica.other_victims, names),
        replica.waits.first().map(|wait| why::line(wait, names)).unwrap_or_default(),
    ]
}

/// The outcome, with the usual term for `displace`.
fn outcome(replica: &ReplicaDryRun) -> String {
    match replica.outcome.as_str() {
        "displace" => "preempt".into(),
        outcome => outcome.into(),
    }
}

fn clusters(replica: &ReplicaDryRun) -> impl Iterator<Item = ClusterId> {
    replica.cluster_id.into_iter().chain(replica.waits.iter().flat_map(why::clusters))
}

fn deployments(replica: &ReplicaDryRun) -> impl Iterator<Item = DeploymentId> {
    let victims = replica.victims.iter().map(|victim| victim.deployment_id);
    victims.chain(replica.waits.iter().flat_map(why::deployments))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::sample;
    use super::*;

    #[test]
    fn table_has_one_row_per_replica() {
        let (c, d) = (sample::id("c"), sample::id("d"));
        let dry_run: DryRun = serde_json::from_value(json!({
            "dry_run": true, "at": "2026-01-02T03:04:05Z", "replicas": [
                {"number": 0, "outcome": "start", "cluster_id": c, "node": "a", "victims": [],
                 "other_victims": 0, "waits": []},
                {"number": 1, "outcome": "displace", "cluster_id": c, "node": "b",
                 "victims": [{"deployment_id": d, "replica": 2}], "other_victims": 1, "waits": []},
                {"number": 2, "outcome": "wait", "victims": [], "other_victims": 0, "waits":
                 [sample::explanation(json!({"number": 2, "wait": "short", "position": 1}))]}],
        }))
        .unwrap();
        let want = "\
REPLICA  OUTCOME  CLUSTER  NODE  VICTIMS                                     WHY
0        start    prod     a     -                                           -
1        preempt  prod     b     batch/2, 1 replica of another organization  -
2        wait     -        -     -                                           pending, insufficient free capacity; position in the queue: 1
";
        assert_eq!(table(&dry_run, &Names::from([("c", "prod"), ("d", "batch")])), want);
    }
}
