//! Placement explanation of a replica as text, for `explain` and `--dry-run`.

use model::{ClusterId, DeploymentId, Resources};
use wire::explain::{Blocker, NodeShortage, ReplicaExplanation};

use super::super::format;
use super::super::names::Names;

/// Clusters in the explanation.
pub(super) fn clusters(why: &ReplicaExplanation) -> impl Iterator<Item = ClusterId> {
    why.shortages.iter().map(|shortage| shortage.cluster_id).chain(why.cluster_id)
}

/// Deployments in the explanation.
pub(super) fn deployments(why: &ReplicaExplanation) -> impl Iterator<Item = DeploymentId> {
    why.blockers.iter().map(|blocker| blocker.deployment_id)
}

/// Summary of the placement.
pub(super) fn verdict(why: &ReplicaExplanation) -> String {
    match (why.verdict.as_str(), why.wait.as_deref()) {
        ("placed", _) => "placed".into(),
        ("stopping", _) => "stopping".into(),
        ("never", _) => "unschedulable, no eligible node is large enough, even if empty".into(),
        ("not_now", Some("short")) => "pending, insufficient free capacity".into(),
        ("not_now", Some("behind")) => {
            "pending, behind other replicas in the queue that need the same capacity".into()
        }
        ("not_now", Some("yielding")) => "pending, preemption victims are stopping".into(),
        ("not_now", Some("budget")) => {
            "pending, the organization has reached its limit of preemptions per hour".into()
        }
        ("not_now", Some("fair_share")) => {
            "pending, organizations within their fair share are not preempted".into()
        }
        ("not_now", None) => "pending, not yet evaluated".into(),
        (verdict, wait) => {
            let wait = wait.map(|wait| format!(" ({wait})")).unwrap_or_default();
            format!("{verdict}{wait}")
        }
    }
}

/// Details of the explanation, one per line.
pub(super) fn facts(why: &ReplicaExplanation, names: &Names) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(why.position.map(|position| format!("position in the queue: {position}")));
    facts.extend(reserved_place(why, names));
    facts.extend(why.shortages.iter().map(|shortage| shortage_text(shortage, names)));
    let blockers = units(&why.blockers, why.other_blockers, names);
    facts.extend((!blockers.is_empty()).then(|| format!("blocked by: {blockers}")));
    facts.extend(why.earliest.map(|time| format!("estimated start: {}", format::timestamp(time))));
    facts
}

/// The whole explanation on one line.
pub(super) fn line(why: &ReplicaExplanation, names: &Names) -> String {
    let all = std::iter::once(verdict(why)).chain(facts(why, names));
    all.collect::<Vec<_>>().join("; ")
}

fn reserved_place(why: &ReplicaExplanation, names: &Names) -> Option<String> {
    let place = place(names, why.cluster_id?, why.node.as_deref()?);
    let what = if why.verdict == "placed" { "placed on" } else { "capacity reserved on" };
    Some(format!("{what}: {place}"))
}

fn shortage_text(shortage: &NodeShortage, names: &Names) -> String {
    let place = place(names, shortage.cluster_id, &shortage.node);
    let too_small = if shortage.too_small { ", even if empty" } else { "" };
    match (shortage.missing.is_empty(), shortage.missing_on_machine.is_empty()) {
        (true, true) => format!("not eligible: {place} (labels or anti-affinity)"),
        (true, false) => {
            let missing = amounts(&shortage.missing_on_machine);
            format!("missing on the machine of {place}: {missing}{too_small}")
        }
        (false, is_enough) => {
            let machine = if is_enough {
                String::new()
            } else {
                format!("; on its machine: {}", amounts(&shortage.missing_on_machine))
            };
            format!("missing on {place}: {}{too_small}{machine}", amounts(&shortage.missing))
        }
    }
}

fn amounts(missing: &Resources) -> String {
    let missing = missing.iter();
    let missing = missing.map(|(kind, n)| format!("{} {kind}", format::amount(kind, n)));
    missing.collect::<Vec<_>>().join(" and ")
}

/// Replicas by name, and the number of replicas of other organizations.
pub(super) fn units(own: &[Blocker], others: usize, names: &Names) -> String {
    let name = |unit: &Blocker| format!("{}/{}", names.get(unit.deployment_id), unit.replica);
    let others = match others {
        0 => None,
        1 => Some("1 replica of another organization".to_owned()),
        count => Some(format!("{count} replicas of other organizations")),
    };
    own.iter().map(name).chain(others).collect::<Vec<_>>().join(", ")
}

fn place(names: &Names, cluster: ClusterId, node: &str) -> String {
    format!("{}/{node}", names.get(cluster))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::sample;
    use super::*;

    #[test]
    fn every_verdict_has_a_summary() {
        for (verdict, wait, want) in [
            ("placed", None, "placed"),
            ("stopping", None, "stopping"),
            ("never", Some("never"), "unschedulable, no eligible node"),
            ("not_now", Some("short"), "insufficient free capacity"),
            ("not_now", Some("behind"), "behind other replicas"),
            ("not_now", Some("yielding"), "victims are stopping"),
            ("not_now", Some("fair_share"), "within their fair share are not preempted"),
            ("not_now", Some("budget"), "reached its limit of preemptions per hour"),
            ("not_now", None, "not yet evaluated"),
            ("new", Some("word"), "new (word)"),
        ] {
            let why = sample::explanation(json!({"verdict": verdict, "wait": wait}));
            assert!(super::verdict(&why).contains(want), "{why:?}");
        }
    }

    #[test]
    fn details_use_names() {
        let (c1, c2) = (sample::id("c1"), sample::id("c2"));
        let why = sample::explanation(json!({
            "number": 1, "wait": "short", "position": 3,
            "shortages": [
                {"cluster_id": c1, "node": "a", "missing": {"cpu": 1.5, "ram": 536_870_912},
                 "too_small": false},
                {"cluster_id": c1, "node": "b", "missing": {"cpu": 4}, "too_small": true},
                {"cluster_id": c2, "node": "c", "missing": {}, "too_small": false}],
            "blockers": [{"deployment_id": sample::id("d1"), "replica": 0},
                         {"deployment_id": sample::id("d2"), "replica": 7}],
            "other_blockers": 2, "earliest": "2026-01-02T03:04:05.678Z",
        }));
        let names = Names::from([("c1", "prod"), ("d1", "web")]);
        let want = [
            "position in the queue: 3",
            "missing on prod/a: 1.5 cpu and 512Mi ram",
            "missing on prod/b: 4 cpu, even if empty",
            "not eligible: c2000000000000000000/c (labels or anti-affinity)",
            "blocked by: web/0, d2000000000000000000/7, 2 replicas of other organizations",
            "estimated start: 2026-01-02T03:04:05Z",
        ];
        assert_eq!(facts(&why, &names), want);
        let cluster_ids: Vec<_> = clusters(&why).map(|id| id.to_string()).collect();
        assert_eq!(cluster_ids, [c1.clone(), c1, c2]);
        assert_eq!(deployments(&why).count(), 2);
        assert!(line(&why, &names).starts_with("pending, insufficient free capacity; position"));
    }
}
