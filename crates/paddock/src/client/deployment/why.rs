//! Why a replica is where it is, in words: for `explain` and for `--dry-run`.

use model::{ClusterId, DeploymentId};
use wire::explain::{Blocker, NodeShortage, ReplicaExplanation};

use super::super::format;
use super::super::names::Names;

/// The clusters that it names.
pub(super) fn clusters(why: &ReplicaExplanation) -> impl Iterator<Item = ClusterId> {
    why.shortages.iter().map(|shortage| shortage.cluster_id).chain(why.cluster_id)
}

/// The deployments that it names.
pub(super) fn deployments(why: &ReplicaExplanation) -> impl Iterator<Item = DeploymentId> {
    why.blockers.iter().map(|blocker| blocker.deployment_id)
}

/// The verdict as a sentence about the replica.
pub(super) fn verdict(why: &ReplicaExplanation) -> String {
    match (why.verdict.as_str(), why.wait.as_deref()) {
        ("placed", _) => "has its place".into(),
        ("stopping", _) => "is stopping".into(),
        ("never", _) => {
            "can never start: no node that it may use is large enough, even when empty".into()
        }
        ("not_now", Some("short")) => "waits: there is too little room now".into(),
        ("not_now", Some("behind")) => "waits: others who ask for the same are before it".into(),
        ("not_now", Some("yielding")) => "waits: others are stopping to make room for it".into(),
        ("not_now", Some("budget")) => {
            "waits: its organization has displaced as many as it may in an hour".into()
        }
        ("not_now", None) => "waits to be looked at".into(),
        (verdict, wait) => {
            let wait = wait.map(|wait| format!(" ({wait})")).unwrap_or_default();
            format!("is {verdict}{wait}")
        }
    }
}

/// Everything else that is known, one fact a line.
pub(super) fn facts(why: &ReplicaExplanation, names: &Names) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(why.position.map(|position| format!("position in the queue: {position}")));
    facts.extend(kept_place(why, names));
    facts.extend(why.shortages.iter().map(|shortage| shortage_text(shortage, names)));
    let in_the_way = units(&why.blockers, why.other_blockers, names);
    facts.extend((!in_the_way.is_empty()).then(|| format!("in the way: {in_the_way}")));
    facts.extend(why.earliest.map(|time| {
        let time = format::timestamp(time);
        format!("can start: {time}, if all ends as planned and nobody takes the room before")
    }));
    facts
}

/// All of it in one line.
pub(super) fn line(why: &ReplicaExplanation, names: &Names) -> String {
    let all = std::iter::once(verdict(why)).chain(facts(why, names));
    all.collect::<Vec<_>>().join("; ")
}

fn kept_place(why: &ReplicaExplanation, names: &Names) -> Option<String> {
    let place = place(names, why.cluster_id?, why.node.as_deref()?);
    let what = if why.verdict == "placed" { "placed on" } else { "room is kept on" };
    Some(format!("{what}: {place}"))
}

fn shortage_text(shortage: &NodeShortage, names: &Names) -> String {
    let place = place(names, shortage.cluster_id, &shortage.node);
    if shortage.missing.is_empty() {
        return format!("does not suit: {place}, for its labels or for other replicas there");
    }
    let missing = shortage.missing.iter();
    let missing = missing.map(|(kind, n)| format!("{} {kind}", format::amount(kind, n)));
    let missing = missing.collect::<Vec<_>>().join(" and ");
    let too_small = if shortage.too_small { ", even when it is empty" } else { "" };
    format!("missing on {place}: {missing}{too_small}")
}

/// Replicas by name, and how many of others.
pub(super) fn units(own: &[Blocker], others: usize, names: &Names) -> String {
    let name = |unit: &Blocker| format!("{}/{}", names.of(unit.deployment_id), unit.replica);
    let others = match others {
        0 => None,
        1 => Some("1 of another organization".to_owned()),
        count => Some(format!("{count} of other organizations")),
    };
    own.iter().map(name).chain(others).collect::<Vec<_>>().join(", ")
}

fn place(names: &Names, cluster: ClusterId, node: &str) -> String {
    format!("{}/{node}", names.of(cluster))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::sample;
    use super::*;

    #[test]
    fn every_verdict_has_its_sentence() {
        for (verdict, wait, want) in [
            ("placed", None, "has its place"),
            ("stopping", None, "is stopping"),
            ("never", Some("never"), "can never start: no node"),
            ("not_now", Some("short"), "too little room"),
            ("not_now", Some("behind"), "others who ask for the same"),
            ("not_now", Some("yielding"), "others are stopping"),
            ("not_now", Some("budget"), "displaced as many as it may"),
            ("not_now", None, "waits to be looked at"),
            ("new", Some("word"), "is new (word)"),
        ] {
            let why = sample::explanation(json!({"verdict": verdict, "wait": wait}));
            assert!(super::verdict(&why).contains(want), "{why:?}");
        }
    }

    #[test]
    fn all_that_is_known_is_told_by_name() {
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
            "missing on prod/b: 4 cpu, even when it is empty",
            "does not suit: c2000000000000000000/c, for its labels or for other replicas there",
            "in the way: web/0, d2000000000000000000/7, 2 of other organizations",
            "can start: 2026-01-02T03:04:05Z, if all ends as planned and nobody takes the room before",
        ];
        assert_eq!(facts(&why, &names), want);
        let cluster_ids: Vec<_> = clusters(&why).map(|id| id.to_string()).collect();
        assert_eq!(cluster_ids, [c1.clone(), c1, c2]);
        assert_eq!(deployments(&why).count(), 2);
        assert!(line(&why, &names).starts_with("waits: there is too little room now; position"));
    }
}
