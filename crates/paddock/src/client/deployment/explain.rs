//! `paddock deployment explain`: explains the placement of a deployment.

use std::iter;

use wire::explain::{DeploymentExplanation, ReplicaExplanation};

use super::super::call::Call;
use super::super::error::Error;
use super::super::format;
use super::super::http::Api;
use super::super::names::Names;
use super::super::print::Printer;
use super::super::quota;
use super::super::subject::{self, DEPLOYMENT};
use super::super::table;
use super::why;

/// Explains a deployment.
pub(super) async fn run(api: &Api, printer: &mut Printer, which: &str) -> Result<(), Error> {
    let subject = subject::find(api, &DEPLOYMENT, which).await?;
    let response = api.send(&Call::get(&["deployments", &subject.id, "explain"])).await?;
    if printer.is_json() {
        return printer.text(&response.body);
    }
    let explanation: DeploymentExplanation = api.read(&response)?;
    let replicas = &explanation.replicas;
    let clusters = replicas.iter().flat_map(why::clusters);
    let deployments = replicas.iter().flat_map(why::deployments);
    let names = Names::look_up(api, clusters, deployments).await;
    printer.text(&text(subject.label(), &explanation, &names))
}

fn text(label: &str, explanation: &DeploymentExplanation, names: &Names) -> String {
    let at = format::timestamp(explanation.at);
    let head = table::fields(&[
        ("DEPLOYMENT", label.into()),
        ("STATUS", explanation.status.clone()),
        ("REASON", explanation.status_reason.clone()),
        ("AT", at),
    ]);
    let parts = grouped(&explanation.replicas, names).into_iter();
    let parts = parts.map(|(numbers, text)| format!("{}: {text}\n", replica_label(&numbers)));
    let quotas = Some(quota::organization(&explanation.quotas));
    let quotas = quotas.filter(|_| !explanation.quotas.is_empty());
    iter::once(head).chain(parts).chain(quotas).collect::<Vec<_>>().join("\n")
}

/// Groups replicas that have the same explanation.
fn grouped(replicas: &[ReplicaExplanation], names: &Names) -> Vec<(Vec<u32>, String)> {
    let mut groups: Vec<(Vec<u32>, String)> = Vec::new();
    for replica in replicas {
        let facts =
            why::facts(replica, names).into_iter().map(|fact| format!("  {}", table::clean(&fact)));
        let text = iter::once(format!("{}.", why::verdict(replica))).chain(facts);
        let text = text.collect::<Vec<_>>().join("\n");
        match groups.iter_mut().find(|(_, other)| *other == text) {
            Some((numbers, _)) => numbers.push(replica.number),
            None => groups.push((vec![replica.number], text)),
        }
    }
    groups
}

/// `Replica 3`, or `Replicas 0, 2–5`.
fn replica_label(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let ranges = ranges.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    let ranges = ranges.collect::<Vec<_>>().join(", ");
    if numbers.len() == 1 { format!("Replica {ranges}") } else { format!("Replicas {ranges}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::sample;
    use super::*;

    #[test]
    fn replicas_with_the_same_explanation_are_grouped() {
        let placed = json!({"verdict": "placed", "cluster_id": sample::id("c"), "node": "a"});
        let behind = |number: u32| json!({"number": number, "wait": "behind"});
        let replicas = [placed, behind(1), behind(2), behind(3)].map(sample::explanation);
        let explanation = DeploymentExplanation {
            deployment_id: sample::id("d").parse().unwrap(),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            status: "running".into(),
            status_reason: "1 of 4 replicas run.".into(),
            reason_code: "CapacityReserved".into(),
            replicas: replicas.into(),
            quotas: vec![wire::quota::OrganizationQuota {
                kind: "cpu".into(),
                used: "8".parse().unwrap(),
                limit: Some("8".parse().unwrap()),
                is_default: false,
            }],
        };
        let want = "\
DEPLOYMENT  web
STATUS      running
REASON      1 of 4 replicas run.
AT          2026-01-02T03:04:05Z

Replica 0: placed.
  placed on: prod/a

Replicas 1–3: pending, behind other replicas in the queue that need the same capacity.

QUOTA  USED  LIMIT  SOURCE
cpu    8     8      organization
";
        assert_eq!(text("web", &explanation, &Names::from([("c", "prod")])), want);
    }

    #[test]
    fn consecutive_numbers_become_a_range() {
        for (numbers, want) in [
            (&[3][..], "Replica 3"),
            (&[0, 1], "Replicas 0, 1"),
            (&[0, 2, 3, 4, 9], "Replicas 0, 2–4, 9"),
        ] {
            assert_eq!(replica_label(numbers), want);
        }
    }
}
