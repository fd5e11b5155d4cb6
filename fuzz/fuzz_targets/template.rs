//! Templates: a document, and after a line `%%` the parameters. Parsing, expanding, planning and
//! filling are deterministic; nodes come after their dependencies.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use model::template::{
    Act, Context, Expanded, Source, Template, diff, expand, fill, fill_text, parse, plan,
};
use model::yaml;
use serde_json::{Map, Value, json};

fuzz_target!(|text: &str| {
    let (document, parameters) = text.split_once("\n%%\n").unwrap_or((text, ""));
    let Ok(template) = parse("template.yaml", document) else { return };
    assert_eq!(diff(&template, &template), []);
    check_json(&template);
    let given = yaml::values("parameters.yaml", parameters).unwrap_or_default();
    let source = [Source { template: &template, files_print: "" }];
    let expanded = expand(&source, &given);
    assert_eq!(expanded, expand(&source, &given), "expansion is deterministic");
    if let Ok(expanded) = expanded {
        check_expanded(&expanded);
    }
});

/// Published templates are stored as JSON.
fn check_json(template: &Template) {
    let json = serde_json::to_string(template).expect("a template is JSON");
    let stored: Template = serde_json::from_str(&json).expect("it was written as JSON");
    assert_eq!(&stored, template);
}

fn check_expanded(expanded: &Expanded) {
    let mut names = BTreeSet::new();
    for node in &expanded.nodes {
        let is_ready = node.after.iter().all(|name| names.contains(name.as_str()));
        assert!(is_ready, "{} comes before its dependencies {:?}", node.name, node.after);
        assert!(names.insert(node.name.as_str()), "{} is not unique", node.name);
    }
    let outputs = json!({"id": "x", "endpoint": "http://localhost:1", "all": [1, 2]});
    let outputs: Map<String, Value> = outputs.as_object().cloned().unwrap_or_default();
    let outputs = expanded.nodes.iter().map(|node| (node.name.clone(), outputs.clone()));
    let context = Context {
        environment_id: "environment".into(),
        environment_name: "test".into(),
        organization_id: "organization".into(),
        parameters: expanded.parameters.clone(),
        outputs: outputs.collect(),
    };
    let plan_of = || plan(&expanded.nodes, &context, &[]);
    assert_eq!(plan_of(), plan_of(), "a plan is deterministic");
    assert!(plan_of().steps.iter().all(|step| step.act == Act::Create));
    for node in &expanded.nodes {
        assert_eq!(fill(node, &context), fill(node, &context), "{}", node.name);
        let health = node.health.as_ref().map(|url| fill_text(url, Some(node), &context));
        let _ = health;
    }
    for url in &expanded.entry_points {
        assert_eq!(fill_text(url, None, &context), fill_text(url, None, &context));
    }
}
