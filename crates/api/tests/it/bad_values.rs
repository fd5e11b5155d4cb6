//! Invalid values for each kind of field.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Rule of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// An object with fields.
    Object,
    /// Text without format rules.
    Text,
    /// A single line with a maximum length.
    Name(usize),
    /// As `Name`; empty means that the server chooses.
    OptionalName(usize),
    Password,
    /// One of a set of values.
    OneOf,
    /// A bounded integer.
    Whole(i64, i64),
    /// At least one resource amount.
    Amounts,
    /// Optional resource amounts.
    SomeAmounts,
    /// Limits by kind; null is allowed.
    Quotas,
    /// Container image: `registry/name:tag`.
    Image,
    Labels,
    Env,
    Words,
    Ports,
    YesOrNo,
    /// Log lines.
    LogLines,
    /// Nodes of a cluster.
    Nodes,
    /// Reports of an agent.
    Reports,
    /// An ID, as text or as a number.
    KargoId,
    /// Name of an instance.
    InstanceName,
    /// A time.
    Time,
    /// A DNS label.
    Label,
    /// A lifetime.
    Life,
    /// Templates with versions.
    References,
}

/// Values that violate the rule.
pub(crate) fn bad(rule: Rule) -> Vec<Value> {
    let long = |length: usize| "x".repeat(length);
    match rule {
        Rule::Object => items(json!([5, "x", [1]])),
        Rule::Text => items(json!([5, true, [], {}])),
        Rule::Name(max) => [optional_name(max), items(json!(["", " \t "]))].concat(),
        Rule::OptionalName(max) => optional_name(max),
        Rule::Password => items(json!([5, [], {}, "", long(1025)])),
        Rule::OneOf => items(json!([5, [], {}, "", "boss", "\0"])),
        Rule::Whole(low, high) => whole(low, high),
        Rule::Amounts => [amounts(), vec![json!({})]].concat(),
        Rule::SomeAmounts => amounts(),
        Rule::Quotas => {
            let mut bad = [amounts(), vec![json!({})]].concat();
            bad.retain(|quotas| quotas.get("cpu") != Some(&Value::Null));
            bad
        }
        Rule::Image => items(json!([5, [], "", "a b", "a\0b", long(513)])),
        Rule::Labels => labels(),
        Rule::Env => env(),
        Rule::Words => items(json!(["x", [5], {}, ["a\0b"], vec!["x"; 257]])),
        Rule::Ports => {
            let many: Vec<u16> = (1..=65).collect();
            items(json!([80, [0], [65_536], [-1], ["x"], many]))
        }
        Rule::LogLines => items(json!([
            5, {}, ["x"], [{"text": "x"}],
            [{"at": "now", "source": "stdout", "text": "x", "next": "1"}],
            [{"at": "2026-01-01T00:00:00Z", "source": "stdin", "text": "x", "next": "1"}],
        ])),
        Rule::YesOrNo => items(json!(["true", 1, []])),
        Rule::Nodes => nodes(),
        Rule::Reports => reports(),
        Rule::InstanceName => {
            let texts = json!(["", "A", "a b", "a-", "-a", "1a", "a\0b", "ä", long(33)]);
            [items(texts), bad(Rule::Text)].concat()
        }
        Rule::Time => items(json!([5, [], "", "yesterday", "2026-01-01"])),
        Rule::Label => {
            let texts = json!(["A", "a b", "a-", "-a", "a.b", "a\0b", "ä", long(64)]);
            [items(texts), bad(Rule::Text)].concat()
        }
        Rule::Life => {
            let texts = json!(["", "x", "5", "-1h", "1.5h", "1 h", "99999999999d"]);
            [items(texts), items(json!([0, -1, 1.5, 1e30, true, []]))].concat()
        }
        Rule::References => {
            items(json!([5, "x@1", {}, [], [5], ["x"], ["X@1"], ["x@1@2"], ["never-was@1"]]))
        }
        Rule::KargoId => items(json!([[], {}, true, -1, 1.5])),
    }
}

/// The items of an array.
fn items(array: Value) -> Vec<Value> {
    serde_json::from_value(array).unwrap()
}

fn optional_name(max: usize) -> Vec<Value> {
    // NUL, escape, newline, right-to-left override, an invisible character.
    let texts = json!(["a\0b", "a\u{1b}[31mb", "a\nb", "a\u{202e}b", "a\u{feff}b"]);
    [items(json!([5, true, [], {}, "x".repeat(max + 1)])), items(texts)].concat()
}

fn whole(low: i64, high: i64) -> Vec<Value> {
    items(json!([low - 1, high + 1, i64::MIN, i64::MAX, "x", 1.5, 1e30, true, [], {}]))
}

fn amounts() -> Vec<Value> {
    let large = json!([1e300, u64::MAX, "99999999999999999999999999999999", "9Pi"]);
    let others = json!([-1, "-0.5", "NaN", "inf", "1e3", "1,5", "", "many", 0.0001, "0.5m", true]);
    let bad_amounts = [items(others), items(large), items(json!([null, [1], {}]))].concat();
    let long = "x".repeat(64);
    let bad_kinds = ["", "CPU", "c pu", "cpu\0", "9cpu", "cpü", &long].map(|kind| json!({kind: 1}));
    let many: BTreeMap<String, i64> = (0..33).map(|i| (format!("kind{i}"), 1)).collect();
    let bad_shapes = items(json!([5, "cpu", [["cpu", 1]], many]));
    let bad_amounts = bad_amounts.into_iter().map(|amount| json!({"cpu": amount}));
    bad_amounts.chain(bad_kinds).chain(bad_shapes).collect()
}

fn nodes() -> Vec<Value> {
    let node = |name: &str| json!({"name": name, "capacity": {"cpu": 1}});
    let many: Vec<Value> = (0..1001).map(|n| node(&format!("n{n}"))).collect();
    items(json!([
        5, {}, [5],
        [{"name": "a"}],
        [{"capacity": {"cpu": 1}}],
        [{"name": "a", "capacity": {}}],
        [{"name": "a", "capacity": {"cpu": -1}}],
        [{"name": "a", "capacity": {"cpu": 1}, "colour": "red"}],
        [{"name": "a", "capacity": {"cpu": 1}, "labels": {"": "x"}}],
        [node("")], [node("-a")], [node("A")], [node(&"x".repeat(64))], [node("a"), node("a")],
        many,
    ]))
}

fn reports() -> Vec<Value> {
    let id = "9m4e2mr0ui3e8a215n4g";
    let report = |replica: Value, observed: Value| json!({"replica": replica, "cluster": id, "generation": 1, "observed": observed});
    let (replica, gone) = (json!({"deployment": id, "number": 0}), json!({"state": "gone"}));
    let good = report(replica.clone(), gone.clone());
    let many = vec![good; 1001];
    let bad_reports = json!([
        [report(json!({"deployment": "x", "number": 0}), gone.clone())],
        [report(json!({"deployment": id, "number": -1}), gone.clone())],
        [report(json!({"deployment": id, "number": 5_000_000_000_i64}), gone)],
        [report(replica.clone(), json!({"state": "dancing"}))],
        [report(replica.clone(), json!({"state": "running"}))],
        [report(replica, json!({"state": "failed", "reason": 5}))],
    ]);
    [items(json!([5, {}, [5], [{}], many])), items(bad_reports)].concat()
}

fn labels() -> Vec<Value> {
    let many: BTreeMap<String, &str> = (0..65).map(|i| (format!("l{i}"), "x")).collect();
    items(json!([
        5, ["x"], {"a": 5}, {"a": "x".repeat(256)}, {"a": "b\0"}, {"a\0": "b"}, {"a b": "b"}, {"": "b"},
        {"x".repeat(64): "b"}, many,
    ]))
}

fn env() -> Vec<Value> {
    let many: BTreeMap<String, &str> = (0..257).map(|i| (format!("V{i}"), "x")).collect();
    items(json!([
        5, ["A=B"], {"A": 5}, {"A": "b\0"}, {"A\0": "b"}, {"A\n": "b"}, {"A=B": "b"}, {"": "b"},
        {"A": "x".repeat(33 * 1024)}, many,
    ]))
}

/// Query values that violate the rule of the parameter.
pub(crate) fn bad_query(path: &str, name: &str) -> &'static [&'static str] {
    match name {
        "limit" | "offset" => &["0", "-1", "1001", "x", "1.5", "99999999999999999999"],
        "page" => &["-1", "x", "1.5", "99999999999999999999"],
        "after" => &["x", "-1", "9m4e2mr0ui3e8a215n4z"],
        "all" | "follow" | "dry_run" | "force" | "shared" | "destroyed" | "cascade" => {
            &["x", "1", "TRUE"]
        }
        "wait" => &["x", "-1", "61", "1.5"],
        "depth" => &["0", "-1", "x", "2001"],
        "direction" | "format" => &["x", "JSON"],
        "q" => &["", "%20", "-"],
        "replica" | "tail" => &["x", "-1", "1.5", "99999999999999999999"],
        "status" | "kind" => &["x", "READY"],
        "since" => &["yesterday", "2026-01-01", "1e3"],
        "type" if path.contains("/self/") => &["x", "DETAILED"],
        "cluster_id" if path.starts_with("/api/") => &["x", "1"],
        // References: unknown names are simply not found.
        "name" | "subject" | "type" | "cluster_id" | "id" | "code" | "clusterId" | "seen"
        | "owner" | "holder" | "commit" | "from" | "to" | "username" => &[],
        other => panic!("{path} has a new query parameter {other}: add its invalid values here"),
    }
}
