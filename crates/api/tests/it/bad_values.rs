//! What must not be accepted, by the rule of a field.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What a field may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// An object with fields of its own.
    Object,
    /// Text whose content is not a matter of form.
    Text,
    /// A line that people read, with at most so many characters.
    Name(usize),
    /// As `Name`; empty means: choose one for me.
    OptionalName(usize),
    Password,
    /// One of a few words.
    OneOf,
    /// A whole number in bounds.
    Whole(i64, i64),
    /// At least one amount.
    Amounts,
    /// Amounts, if any.
    SomeAmounts,
    /// What to run: `registry/name:tag`.
    Image,
    Labels,
    Env,
    Words,
    Ports,
    YesOrNo,
    /// Lines of a log.
    LogLines,
    /// The parts of a cluster.
    Nodes,
    /// What an agent says.
    Reports,
    /// An id, as text or as a number.
    KargoId,
    /// The name of an instance.
    InstanceName,
    /// A point in time.
    Time,
    /// A name that can be a DNS label.
    Label,
    /// How long something shall live.
    Life,
    /// Templates with their versions.
    References,
}

/// Values that break the rule.
pub(crate) fn bad(rule: Rule) -> Vec<Value> {
    match rule {
        Rule::Object => vec![json!(5), json!("x"), json!([1])],
        Rule::Text => vec![json!(5), json!(true), json!([]), json!({})],
        Rule::Name(max) => [optional_name(max), vec![json!(""), json!(" \t ")]].concat(),
        Rule::OptionalName(max) => optional_name(max),
        Rule::Password => {
            vec![json!(5), json!([]), json!({}), json!(""), json!("x".repeat(1025))]
        }
        Rule::OneOf => vec![json!(5), json!([]), json!({}), json!(""), json!("boss"), json!("\0")],
        Rule::Whole(low, high) => whole(low, high),
        Rule::Amounts => [amounts(), vec![json!({})]].concat(),
        Rule::SomeAmounts => amounts(),
        Rule::Image => {
            let long = "x".repeat(513);
            vec![json!(5), json!([]), json!(""), json!("a b"), json!("a\0b"), json!(long)]
        }
        Rule::Labels => labels(),
        Rule::Env => env(),
        Rule::Words => {
            let many = vec!["x"; 257];
            vec![json!("x"), json!([5]), json!({}), json!(["a\0b"]), json!(many)]
        }
        Rule::Ports => {
            let many: Vec<u16> = (1..=65).collect();
            vec![json!(80), json!([0]), json!([65_536]), json!([-1]), json!(["x"]), json!(many)]
        }
        Rule::LogLines => vec![
            json!(5),
            json!({}),
            json!(["x"]),
            json!([{"text": "x"}]),
            json!([{"at": "now", "source": "stdout", "text": "x", "next": "1"}]),
            json!([{"at": "2026-01-01T00:00:00Z", "source": "stdin", "text": "x", "next": "1"}]),
        ],
        Rule::YesOrNo => vec![json!("true"), json!(1), json!([])],
        Rule::Nodes => nodes(),
        Rule::Reports => reports(),
        Rule::InstanceName => {
            let long = "x".repeat(33);
            let texts = ["", "A", "a b", "a-", "-a", "1a", "a\0b", "ä", &long];
            let others = [json!(5), json!(true), json!([]), json!({})];
            texts.map(|text| json!(text)).into_iter().chain(others).collect()
        }
        Rule::Time => vec![json!(5), json!([]), json!(""), json!("yesterday"), json!("2026-01-01")],
        Rule::Label => {
            let long = "x".repeat(64);
            let texts = ["A", "a b", "a-", "-a", "a.b", "a\0b", "ä", &long];
            let others = [json!(5), json!(true), json!([]), json!({})];
            texts.map(|text| json!(text)).into_iter().chain(others).collect()
        }
        Rule::Life => {
            let texts =
                ["", "x", "5", "-1h", "1.5h", "1 h", "99999999999d"].map(|text| json!(text));
            let others = [json!(0), json!(-1), json!(1.5), json!(1e30), json!(true), json!([])];
            texts.into_iter().chain(others).collect()
        }
        Rule::References => vec![
            json!(5),
            json!("x@1"),
            json!({}),
            json!([]),
            json!([5]),
            json!(["x"]),
            json!(["X@1"]),
            json!(["x@1@2"]),
            json!(["never-was@1"]),
        ],
        Rule::KargoId => vec![json!([]), json!({}), json!(true), json!(-1), json!(1.5)],
    }
}

fn optional_name(max: usize) -> Vec<Value> {
    let mut bad = vec![json!(5), json!(true), json!([]), json!({}), json!("x".repeat(max + 1))];
    // NUL, escape, a new line, text that turns round, a mark that can't be seen.
    bad.extend(
        ["a\0b", "a\u{1b}[31mb", "a\nb", "a\u{202e}b", "a\u{feff}b"].map(|text| json!(text)),
    );
    bad
}

fn whole(low: i64, high: i64) -> Vec<Value> {
    let numbers = [low - 1, high + 1, i64::MIN, i64::MAX].map(|n| json!(n));
    let others = [json!("x"), json!(1.5), json!(1e30), json!(true), json!([]), json!({})];
    numbers.into_iter().chain(others).collect()
}

fn amounts() -> Vec<Value> {
    let bad_amounts = [
        json!(-1),
        json!("-0.5"),
        json!("NaN"),
        json!("inf"),
        json!("1e3"),
        json!("1,5"),
        json!(""),
        json!("many"),
        json!(0.0001),
        json!("0.5m"),
        json!(1e300),
        json!(u64::MAX),
        json!("99999999999999999999999999999999"),
        json!("9Pi"),
        json!(true),
        json!(null),
        json!([1]),
        json!({}),
    ];
    let long = "x".repeat(64);
    let bad_kinds = ["", "CPU", "c pu", "cpu\0", "9cpu", "cpü", &long].map(|kind| json!({kind: 1}));
    let many: BTreeMap<String, i64> = (0..33).map(|i| (format!("kind{i}"), 1)).collect();
    let bad_shapes = [json!(5), json!("cpu"), json!([["cpu", 1]]), json!(many)];
    let bad_amounts = bad_amounts.map(|amount| json!({"cpu": amount}));
    bad_amounts.into_iter().chain(bad_kinds).chain(bad_shapes).collect()
}

fn nodes() -> Vec<Value> {
    let node = |name: &str| json!({"name": name, "capacity": {"cpu": 1}});
    let many: Vec<Value> = (0..1001).map(|n| node(&format!("n{n}"))).collect();
    vec![
        json!(5),
        json!({}),
        json!([5]),
        json!([{"name": "a"}]),
        json!([{"capacity": {"cpu": 1}}]),
        json!([{"name": "a", "capacity": {}}]),
        json!([{"name": "a", "capacity": {"cpu": -1}}]),
        json!([{"name": "a", "capacity": {"cpu": 1}, "colour": "red"}]),
        json!([{"name": "a", "capacity": {"cpu": 1}, "labels": {"": "x"}}]),
        json!([node("")]),
        json!([node("-a")]),
        json!([node("A")]),
        json!([node(&"x".repeat(64))]),
        json!([node("a"), node("a")]),
        json!(many),
    ]
}

fn reports() -> Vec<Value> {
    let id = "9m4e2mr0ui3e8a215n4g";
    let report = |replica: Value, observed: Value| json!({"replica": replica, "cluster": id, "generation": 1, "observed": observed});
    let (replica, gone) = (json!({"deployment": id, "number": 0}), json!({"state": "gone"}));
    let good = report(replica.clone(), gone.clone());
    let many = vec![good; 1001];
    vec![
        json!(5),
        json!({}),
        json!([5]),
        json!([{}]),
        json!([report(json!({"deployment": "x", "number": 0}), gone.clone())]),
        json!([report(json!({"deployment": id, "number": -1}), gone.clone())]),
        json!([report(json!({"deployment": id, "number": 5_000_000_000_i64}), gone)]),
        json!([report(replica.clone(), json!({"state": "dancing"}))]),
        json!([report(replica.clone(), json!({"state": "running"}))]),
        json!([report(replica, json!({"state": "failed", "reason": 5}))]),
        json!(many),
    ]
}

fn labels() -> Vec<Value> {
    let many: BTreeMap<String, &str> = (0..65).map(|i| (format!("l{i}"), "x")).collect();
    vec![
        json!(5),
        json!(["x"]),
        json!({"a": 5}),
        json!({"a": "x".repeat(256)}),
        json!({"a": "b\0"}),
        json!({"a\0": "b"}),
        json!({"a b": "b"}),
        json!({"": "b"}),
        json!({"x".repeat(64): "b"}),
        json!(many),
    ]
}

fn env() -> Vec<Value> {
    let many: BTreeMap<String, &str> = (0..257).map(|i| (format!("V{i}"), "x")).collect();
    vec![
        json!(5),
        json!(["A=B"]),
        json!({"A": 5}),
        json!({"A": "b\0"}),
        json!({"A\0": "b"}),
        json!({"A\n": "b"}),
        json!({"A=B": "b"}),
        json!({"": "b"}),
        json!({"A": "x".repeat(33 * 1024)}),
        json!(many),
    ]
}

/// Query values that break the rule of this parameter.
pub(crate) fn bad_query(path: &str, name: &str) -> &'static [&'static str] {
    match name {
        "limit" | "offset" => &["0", "-1", "1001", "x", "1.5", "99999999999999999999"],
        "page" => &["-1", "x", "1.5", "99999999999999999999"],
        "after" => &["x", "-1", "9m4e2mr0ui3e8a215n4z"],
        "all" | "follow" | "dry_run" | "force" | "shared" | "destroyed" => &["x", "1", "TRUE"],
        "wait" => &["x", "-1", "61", "1.5"],
        "depth" => &["0", "-1", "x", "2001"],
        "direction" | "format" => &["x", "JSON"],
        "q" => &["", "%20", "-"],
        "replica" | "tail" => &["x", "-1", "1.5", "99999999999999999999"],
        "status" | "kind" => &["x", "READY"],
        "since" => &["yesterday", "2026-01-01", "1e3"],
        "type" if path.contains("/self/") => &["x", "DETAILED"],
        "cluster_id" if path.starts_with("/api/") => &["x", "1"],
        // These name things: what does not exist is simply not found.
        "name" | "subject" | "type" | "cluster_id" | "id" | "code" | "clusterId" | "seen"
        | "owner" | "holder" | "commit" | "from" | "to" => &[],
        other => panic!("{path} has a new query parameter {other}: say here what it must refuse"),
    }
}
