//! Why a replica is where it is, in words: for `explain` and for `--dry-run`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Number;

use super::super::format;
use super::super::names::Names;

/// Why a replica is where it is.
#[derive(Debug, Deserialize)]
pub(super) struct Why {
    pub(super) number: u32,
    verdict: String,
    #[serde(default)]
    wait: Option<String>,
    #[serde(default)]
    position: Option<u64>,
    #[serde(default)]
    cluster_id: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    shortages: Vec<Shortage>,
    #[serde(default)]
    blockers: Vec<Unit>,
    #[serde(default)]
    other_blockers: u64,
    #[serde(default)]
    earliest: Option<String>,
}

/// What is missing on one node.
#[derive(Debug, Deserialize)]
struct Shortage {
    cluster_id: String,
    node: String,
    #[serde(default)]
    missing: BTreeMap<String, Number>,
    #[serde(default)]
    too_small: bool,
}

/// A replica of some deployment.
#[derive(Debug, Deserialize)]
pub(super) struct Unit {
    deployment_id: String,
    replica: u32,
}

impl Why {
    /// The clusters that it speaks of.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &str> {
        let short = self.shortages.iter().map(|shortage| shortage.cluster_id.as_str());
        short.chain(self.cluster_id.as_deref())
    }

    /// The deployments that it speaks of.
    pub(super) fn deployments(&self) -> impl Iterator<Item = &str> {
        self.blockers.iter().map(Unit::deployment)
    }

    /// The verdict as a sentence about the replica.
    pub(super) fn verdict(&self) -> String {
        match (self.verdict.as_str(), self.wait.as_deref()) {
            ("placed", _) => "has its place".into(),
            ("stopping", _) => "is stopping".into(),
            ("never", _) => {
                "can never start: no node that it may use is large enough, even when empty".into()
            }
            ("not_now", Some("short")) => "waits: there is too little room now".into(),
            ("not_now", Some("behind")) => {
                "waits: others who ask for the same are before it".into()
            }
            ("not_now", Some("yielding")) => {
                "waits: others are stopping to make room for it".into()
            }
            ("not_now", Some("budget")) => "waits: its organization has displaced as many as it \
                                            may in an hour"
                .into(),
            ("not_now", None) => "waits to be looked at".into(),
            (verdict, wait) => {
                let wait = wait.map(|wait| format!(" ({wait})")).unwrap_or_default();
                format!("is {verdict}{wait}")
            }
        }
    }

    /// Everything else that is known, one fact a line.
    pub(super) fn facts(&self, names: &Names) -> Vec<String> {
        let mut facts = Vec::new();
        facts.extend(self.position.map(|position| format!("position in the queue: {position}")));
        facts.extend(self.place(names));
        facts.extend(self.shortages.iter().map(|shortage| shortage.text(names)));
        facts.extend(self.in_the_way(names));
        let start = self.earliest.as_deref().map(|time| {
            let time = format::time(Some(time));
            format!("can start: {time}, if all ends as planned and nobody takes the room before")
        });
        facts.extend(start);
        facts
    }

    /// All of it in one line.
    pub(super) fn line(&self, names: &Names) -> String {
        let facts = self.facts(names);
        if facts.is_empty() {
            self.verdict()
        } else {
            format!("{}; {}", self.verdict(), facts.join("; "))
        }
    }

    fn place(&self, names: &Names) -> Option<String> {
        let place = place(names, self.cluster_id.as_deref()?, self.node.as_deref()?);
        let what = if self.verdict == "placed" { "placed on" } else { "room is kept on" };
        Some(format!("{what}: {place}"))
    }

    fn in_the_way(&self, names: &Names) -> Option<String> {
        let who = units(&self.blockers, self.other_blockers, names);
        (!who.is_empty()).then(|| format!("in the way: {who}"))
    }
}

impl Shortage {
    fn text(&self, names: &Names) -> String {
        let place = place(names, &self.cluster_id, &self.node);
        if self.missing.is_empty() {
            return format!("does not suit: {place}, for its labels or for other replicas there");
        }
        let missing = self.missing.iter();
        let missing = missing.map(|(kind, n)| format!("{} {kind}", format::quantity(kind, n)));
        let missing = missing.collect::<Vec<_>>().join(" and ");
        let too_small = if self.too_small { ", even when it is empty" } else { "" };
        format!("missing on {place}: {missing}{too_small}")
    }
}

impl Unit {
    /// Whose it is.
    pub(super) fn deployment(&self) -> &str {
        &self.deployment_id
    }
}

/// Replicas by name, and how many of others.
pub(super) fn units(own: &[Unit], others: u64, names: &Names) -> String {
    let name = |unit: &Unit| format!("{}/{}", names.of(&unit.deployment_id), unit.replica);
    let others = match others {
        0 => None,
        1 => Some("1 of another organization".to_owned()),
        count => Some(format!("{count} of other organizations")),
    };
    own.iter().map(name).chain(others).collect::<Vec<_>>().join(", ")
}

fn place(names: &Names, cluster: &str, node: &str) -> String {
    format!("{}/{node}", names.of(cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> Why {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_verdict_has_its_sentence() {
        for (verdict, wait, want) in [
            ("placed", "null", "has its place"),
            ("stopping", "null", "is stopping"),
            ("never", "\"never\"", "can never start: no node"),
            ("not_now", "\"short\"", "too little room"),
            ("not_now", "\"behind\"", "others who ask for the same"),
            ("not_now", "\"yielding\"", "others are stopping"),
            ("not_now", "\"budget\"", "displaced as many as it may"),
            ("not_now", "null", "waits to be looked at"),
            ("new", "\"word\"", "is new (word)"),
        ] {
            let why = why(&format!(r#"{{"number":0,"verdict":"{verdict}","wait":{wait}}}"#));
            assert!(why.verdict().contains(want), "{}", why.verdict());
        }
    }

    #[test]
    fn all_that_is_known_is_told_by_name() {
        let why = why(r#"{"number":1,"verdict":"not_now","wait":"short","position":3,
                "shortages":[
                    {"cluster_id":"c1","node":"a","missing":{"cpu":1.5,"ram":536870912},"too_small":false},
                    {"cluster_id":"c1","node":"b","missing":{"cpu":4},"too_small":true},
                    {"cluster_id":"c2","node":"c","missing":{},"too_small":false}],
                "blockers":[{"deployment_id":"d1","replica":0},{"deployment_id":"d2","replica":7}],
                "other_blockers":2,"earliest":"2026-01-02T03:04:05.678Z"}"#);
        let names = Names::from([("c1", "prod"), ("d1", "web")]);
        let want = [
            "position in the queue: 3",
            "missing on prod/a: 1.5 cpu and 512Mi ram",
            "missing on prod/b: 4 cpu, even when it is empty",
            "does not suit: c2/c, for its labels or for other replicas there",
            "in the way: web/0, d2/7, 2 of other organizations",
            "can start: 2026-01-02T03:04:05Z, if all ends as planned and nobody takes the room before",
        ];
        assert_eq!(why.facts(&names), want);
        assert_eq!(why.clusters().collect::<Vec<_>>(), ["c1", "c1", "c2"]);
        assert_eq!(why.deployments().collect::<Vec<_>>(), ["d1", "d2"]);
        assert!(why.line(&names).starts_with("waits: there is too little room now; position"));
    }
}
