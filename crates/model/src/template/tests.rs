//! Tests of templates from source text to plan.

mod expanding;
mod expressions;
mod invalid;
mod planning;
mod properties;
mod simulated;
mod simulator;

use serde_json::{Map, Value, json};

use super::*;
use crate::Invalid;

/// The example that can be published and deployed as it is.
const WEB_SHOP: &str = include_str!("../../../../examples/web-shop/template.yaml");
/// The example from the design of templates.
const DESIGN: &str = include_str!("tests/web-shop.yaml");

/// A template with these resources.
fn with_resources(resources: &str) -> Template {
    let text = format!("name: t\nversion: '1'\nresources:\n{resources}");
    parse("t.yaml", &text).unwrap_or_else(|refused| panic!("{refused}\n{text}"))
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not a map"),
    }
}

fn expanded(template: &Template, given: Value) -> Expanded {
    expand(&[Source { template, files_print: "" }], &map(given)).unwrap()
}

#[test]
fn example_is_parsed_and_planned() {
    let shop = parse("template.yaml", WEB_SHOP).unwrap();
    assert_eq!(shop.reference(), "web-shop@1.4.0");
    let expanded = expanded(&shop, json!({}));
    let names: Vec<&str> = expanded.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["network", "bus", "db-password", "settings", "web-0", "web-1", "migrate"]);
    let plan = plan(&expanded.nodes, &Context::default(), &[]);
    assert!(plan.steps.iter().all(|step| step.act == Act::Create));
    let web = plan.steps.iter().find(|step| step.name == "web-1").unwrap();
    assert_eq!(web.after, ["bus", "db-password", "settings"]);
    assert_eq!(plan.steps.last().unwrap().after, ["web-0", "web-1"]);
}

#[test]
fn json_is_parsed() {
    let json = r#"{"name": "t", "version": "1", "resources": [
        {"name": "a", "executor": "command", "with": {"url": "http://a/"}}]}"#;
    assert_eq!(parse("t.json", json).unwrap().resources[0].name, "a");
}

#[test]
fn diff_is_by_name() {
    let from = parse("t", WEB_SHOP).unwrap();
    let mut to = from.clone();
    to.version = "2".to_owned();
    to.resources.swap(0, 1);
    assert_eq!(diff(&from, &to), []);
    to.resources[4].with.insert("cpu".to_owned(), json!(2));
    to.resources[2].name = "password".to_owned();
    to.parameters.remove("image");
    let changes: Vec<(String, bool, bool)> = diff(&from, &to)
        .into_iter()
        .map(|change| (change.path, change.from.is_some(), change.to.is_some()))
        .collect();
    let expect = [
        ("parameters.image", true, false),
        ("resources.db-password", true, false),
        ("resources.password", false, true),
        ("resources.web.with.cpu", true, true),
    ];
    assert_eq!(changes, expect.map(|(path, from, to)| (path.to_owned(), from, to)));
}
