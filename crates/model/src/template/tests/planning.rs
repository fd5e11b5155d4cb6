//! Plans: steps, reasons and order.

use super::simulator::Simulator;
use super::*;
use crate::resource::Status;

/// The steps with a change: `create a`.
fn acts(plan: &Plan) -> Vec<String> {
    let steps = plan.steps.iter().filter(|step| step.act != Act::Nothing);
    steps.map(|step| format!("{} {}", step.act, step.name)).collect()
}

fn reason<'a>(plan: &'a Plan, name: &str) -> (Act, &'a str) {
    let step = plan.steps.iter().find(|step| step.name == name).unwrap();
    (step.act, &step.reason)
}

fn after<'a>(plan: &'a Plan, name: &str) -> &'a [String] {
    &plan.steps.iter().find(|step| step.name == name).unwrap().after
}

fn desired(resources: &str) -> Expanded {
    expanded(&with_resources(resources), json!({}))
}

/// A deployed environment.
fn deployed(desired: &Expanded) -> Simulator {
    let mut environment = Simulator::default();
    environment.apply(desired);
    environment.assert_converged(desired);
    environment
}

#[test]
fn plans_contain_only_what_a_change_affects() {
    let shop = parse("t", WEB_SHOP).unwrap();
    let at = |given: Value| expanded(&shop, given);
    let mut environment = Simulator::default();
    let order = environment.apply(&at(json!({})));
    let names = ["network", "db-password", "bus", "settings", "web-0", "web-1", "migrate"];
    assert_eq!(order, names.map(|name| format!("create {name}")));
    environment.assert_converged(&at(json!({})));

    // A plan contains only the resources that a change affects.
    let three = at(json!({"replicas": 3}));
    assert_eq!(acts(&environment.plan(&three)), ["create web-2"]);
    assert_eq!(environment.apply(&three), ["create web-2"]);
    let one = at(json!({"replicas": 1}));
    let plan = environment.plan(&one);
    assert_eq!(acts(&plan), ["destroy web-1", "destroy web-2"]);
    assert_eq!(reason(&plan, "web-1").1, "no longer in any template");
    environment.apply(&one);
    let other = at(json!({"replicas": 1, "image": "nginx:2"}));
    let plan = environment.plan(&other);
    assert_eq!(acts(&plan), ["replace web-0"]);
    assert_eq!(reason(&plan, "web-0").1, "image changed; forces replacement");
    assert_eq!(environment.apply(&other), ["replace web-0", "create web-0"]);

    // Outputs of others may change; whether they do is known when the step runs.
    let mut changed = shop.clone();
    changed.resources[0].with["variables"]["cidr"] = json!("10.2.0.0/16");
    let desired = expanded(&changed, json!({"replicas": 1, "image": "nginx:2"}));
    let plan = environment.plan(&desired);
    assert_eq!(acts(&plan), ["update network", "update settings"]);
    assert_eq!(reason(&plan, "network").1, "variables changed");
    assert_eq!(reason(&plan, "settings").1, "outputs of network may change");
    assert_eq!(environment.apply(&desired), ["update network"]);
    changed.resources[1].with["instance_type"] = json!("standard");
    let desired = expanded(&changed, json!({"replicas": 1, "image": "nginx:2"}));
    assert_eq!(acts(&environment.plan(&desired)), ["replace bus", "update settings"]);
    environment.apply(&desired);
    environment.assert_converged(&desired);

    let end = plan_destruction(&environment.existing());
    let mut backwards = acts(&end);
    backwards.reverse();
    let order = ["network", "bus", "db-password", "settings", "web-0", "migrate"];
    for (i, later) in order.iter().enumerate() {
        assert!(backwards.contains(&format!("destroy {later}")));
        for step in end.steps.iter().filter(|step| step.name == *later) {
            assert!(step.after.iter().all(|other| order[i..].contains(&other.as_str())), "{end:?}");
        }
    }
    assert_eq!(backwards[0], "destroy network");
    assert_eq!(after(&end, "bus"), ["settings", "web-0"]);
    assert_eq!(reason(&end, "bus").1, "the environment is being destroyed");
}

/// Asserts the planned step for `a` when the template changes from `before` to `now`.
#[track_caller]
fn change(before: &str, now: &str, expect: (Act, &str)) {
    let environment = deployed(&desired(before));
    let plan = environment.plan(&desired(now));
    assert_eq!(reason(&plan, "a"), expect, "{before} → {now}");
}

#[test]
fn changed_fields_determine_the_step() {
    let one = |executor: &str, with: &str| {
        format!("  - {{name: a, executor: {executor}, with: {{{with}}}}}\n")
    };
    for (executor, before, now, act, why) in [
        ("command", "url: x", "url: x", Act::Nothing, "up to date"),
        ("command", "url: x", "url: y", Act::Update, "url changed"),
        ("command", "url: x", "url: x, name: n", Act::Update, "name changed"),
        ("command", "url: x, name: n", "url: x", Act::Update, "name changed"),
        ("command", "url: x", "url: y, cpu: 1, ram: 1", Act::Update, "cpu, ram and url changed"),
        (
            "command",
            "url: x",
            "url: '{{ \"x\" }}'",
            Act::Nothing,
            "expressions evaluate to the applied values",
        ),
        ("command", "url: x", "url: '{{ environment.name }}'", Act::Update, "url changed"),
        ("terraform", "source: ./a", "source: ./b", Act::Update, "source changed"),
        ("consul-kv", "prefix: a", "prefix: a, values: {b: c}", Act::Update, "values changed"),
        ("consul-kv", "prefix: a", "prefix: b", Act::Replace, "prefix changed; forces replacement"),
        ("vault-secret", "path: a", "path: a, values: {b: c}", Act::Update, "values changed"),
        (
            "vault-secret",
            "path: a",
            "path: b, values: {b: c}",
            Act::Replace,
            "path changed; forces replacement",
        ),
        (
            "service",
            "kind: a",
            "kind: b, region: r",
            Act::Replace,
            "kind and region changed; forces replacement",
        ),
        ("deployment", "replicas: 1", "replicas: 2", Act::Update, "replicas changed"),
        (
            "deployment",
            "replicas: 1",
            "replicas: 2, image: x",
            Act::Replace,
            "image changed; forces replacement",
        ),
    ] {
        change(&one(executor, before), &one(executor, now), (act, why));
    }
    let replaced = (Act::Replace, "executor changes from command to consul-kv");
    change(&one("command", "url: x"), &one("consul-kv", "prefix: x"), replaced);
}

#[test]
fn changed_module_files_cause_an_update() {
    let template = with_resources(
        "  - {name: a, executor: terraform, with: {source: ./a}}\n  - {name: b, executor: command, \
         with: {url: x}}\n",
    );
    let at = |files_print: &str| {
        expand(&[Source { template: &template, files_print }], &Map::new()).unwrap()
    };
    let plan = deployed(&at("1")).plan(&at("2"));
    assert_eq!(reason(&plan, "a"), (Act::Update, "template files changed"));
    assert_eq!(reason(&plan, "b").0, Act::Nothing);
}

const CHAIN: &str = "  - {name: a, executor: command, with: {url: 'x'}}\n  \
    - {name: b, executor: command, with: {url: '{{ a.config.url }}'}}\n  \
    - {name: c, executor: deployment, with: {image: '{{ b.config.url }}'}}\n";

#[test]
fn output_changes_propagate_to_dependents() {
    let before = desired(CHAIN);
    let mut environment = deployed(&before);
    let after = desired(&CHAIN.replace("'x'", "'y'"));
    let plan = environment.plan(&after);
    assert_eq!(reason(&plan, "b"), (Act::Update, "outputs of a may change"));
    let may = "outputs of b may change and force replacement";
    assert_eq!(reason(&plan, "c"), (Act::Update, may));
    let done = environment.apply(&after);
    assert_eq!(done, ["update a", "update b", "replace c", "create c"]);
    environment.assert_converged(&after);

    // Outputs differ although no configuration changed.
    let mut environment = deployed(&before);
    environment.resources[0].outputs.insert("config".to_owned(), json!({"url": "z"}));
    let plan = environment.plan(&before);
    assert_eq!(reason(&plan, "a").0, Act::Nothing);
    assert_eq!(reason(&plan, "b"), (Act::Update, "url changed"));

    // Outputs of missing resources are unknown.
    let none = CHAIN.replace("url: 'x'}", "url: 'x'}, count: 0");
    let plan = environment.plan(&desired(&none));
    let (act, why) = reason(&plan, "b");
    assert!(act == Act::Update && why.starts_with("configuration is not known yet: url:"), "{why}");
}

#[test]
fn unfinished_steps_are_resumed() {
    use Act::{Create, Destroy, Nothing, Replace, Update};
    use Status::{Applied, Applying, Destroying, Drifted, Failed, Pending, Planning};
    let desired = desired("  - {name: a, executor: deployment, with: {image: x}}\n");
    let unfinished = "a previous destroy did not finish";
    for (is_created, status, act, is_begun, expect) in [
        (true, Applied, Nothing, true, (Nothing, "up to date")),
        (
            true,
            Drifted,
            Nothing,
            true,
            (Nothing, "drifted; request a repair to restore the applied state"),
        ),
        (true, Failed, Update, true, (Update, "the last step failed; retrying")),
        (true, Planning, Update, true, (Update, "the last step did not finish")),
        (true, Applying, Update, true, (Update, "the last step did not finish")),
        // The pending change or destroy is no longer desired.
        (true, Pending, Update, false, (Update, "the last step did not start")),
        (true, Pending, Replace, false, (Update, "the last step did not start")),
        (true, Pending, Destroy, false, (Update, "the last step did not start")),
        (true, Pending, Destroy, true, (Replace, unfinished)),
        (true, Failed, Destroy, true, (Replace, unfinished)),
        (true, Failed, Replace, true, (Replace, unfinished)),
        (true, Destroying, Destroy, true, (Replace, unfinished)),
        (true, Destroying, Replace, true, (Replace, unfinished)),
        (false, Pending, Create, false, (Create, "does not exist yet")),
        (false, Failed, Create, true, (Create, "the last create failed; retrying")),
        (false, Applying, Create, true, (Create, "the last create did not finish")),
        (false, Destroying, Destroy, true, (Create, "the last create did not finish")),
    ] {
        let mut existing = deployed(&desired).existing();
        if !is_created {
            (existing[0].print, existing[0].applied) = (None, None);
        }
        (existing[0].status, existing[0].act, existing[0].is_begun) = (status, act, is_begun);
        let plan = plan(&desired.nodes, &Context::default(), &existing);
        assert_eq!(reason(&plan, "a"), expect, "{status} {act}");
    }
    let mut existing = deployed(&desired).existing();
    existing[0].status = Status::Destroyed;
    let plan = plan(&desired.nodes, &Context::default(), &existing);
    assert_eq!(reason(&plan, "a"), (Create, "does not exist yet"));
    assert_eq!(plan_destruction(&existing).steps, []);
}

#[test]
fn destroy_waits_for_former_dependents() {
    let one = |name: &str, more: &str| {
        format!("  - {{name: {name}, executor: deployment, with: {{image: x}}{more}}}\n")
    };
    // `user` no longer depends on `old`.
    let before = [one("old", ""), one("user", ", depends_on: [old]")].concat();
    let environment = deployed(&desired(&before));
    let plan = environment.plan(&desired(&one("user", "")));
    assert_eq!(acts(&plan), ["destroy old"]);
    assert_eq!(after(&plan, "old"), ["user"]);

    // A replace waits for dependents that are destroyed for good.
    let before = [one("base", ""), one("mid", ", depends_on: [base]")].concat()
        + &one("top", ", depends_on: [mid]");
    let mut environment = deployed(&desired(&before));
    let now = desired(&one("base", "").replace("image: x", "image: y"));
    let plan = environment.plan(&now);
    assert_eq!(acts(&plan), ["destroy top", "destroy mid", "replace base"]);
    assert_eq!(after(&plan, "base"), ["mid"]);
    let done = environment.apply(&now);
    assert_eq!(done, ["destroy top", "destroy mid", "replace base", "create base"]);
    environment.assert_converged(&now);

    // A count of 0 destroys the last resource.
    let plan = environment.plan(&desired(&one("base", ", count: 0")));
    assert_eq!(reason(&plan, "base"), (Act::Destroy, "no longer in any template"));
}

/// A field and how to change it.
type Set<T> = (&'static str, fn(&mut T));

#[test]
fn plan_hash_covers_existing_and_desired_state() {
    let before = desired(CHAIN);
    let environment = deployed(&before);
    let hash_of = |nodes: &[Node], existing: &[Existing]| {
        let context = Context { parameters: Map::new(), ..environment.context(&before) };
        plan(nodes, &context, existing).hash
    };
    let (nodes, existing) = (before.nodes.clone(), environment.existing());
    let hash = hash_of(&nodes, &existing);
    assert_eq!(hash.len(), 64);
    let (mut other_nodes, mut other_existing) = (nodes.clone(), existing.clone());
    other_nodes.reverse();
    other_existing.swap(0, 2);
    assert_eq!(hash_of(&other_nodes, &other_existing), hash);

    let existing_changes: [Set<Existing>; 9] = [
        ("name", |one| one.name = "z".to_owned()),
        ("executor", |one| one.executor = Executor::Service),
        ("status", |one| one.status = Status::Drifted),
        ("print", |one| one.print = Some("p".to_owned())),
        ("no print", |one| one.print = None),
        ("applied", |one| one.applied = Some(map(json!({"url": "other"})))),
        ("outputs", |one| drop(one.outputs.insert("more".to_owned(), json!(1)))),
        ("act", |one| one.act = Act::Update),
        ("is_begun", |one| one.is_begun = false),
    ];
    let mut hashes = vec![hash];
    for (what, set) in existing_changes {
        let mut existing = existing.clone();
        set(&mut existing[0]);
        hashes.push(hash_of(&nodes, &existing));
        assert!(!hashes[..hashes.len() - 1].contains(hashes.last().unwrap()), "{what}");
    }
    let desired_changes: [Set<Node>; 7] = [
        ("name", |one| one.name = "z".to_owned()),
        ("print", |one| one.print = "p".to_owned()),
        ("template", |one| one.template = "t@2".to_owned()),
        ("description", |one| one.description = "d".to_owned()),
        ("tags", |one| drop(one.tags.insert("k".to_owned(), "v".to_owned()))),
        ("health", |one| one.health = Some("http://x".to_owned())),
        ("after", |one| one.after.clear()),
    ];
    for (what, set) in desired_changes {
        let mut nodes = nodes.clone();
        set(&mut nodes[2]);
        hashes.push(hash_of(&nodes, &existing));
        assert!(!hashes[..hashes.len() - 1].contains(hashes.last().unwrap()), "{what}");
    }
    assert_ne!(plan_destruction(&existing).hash, hashes[0]);
    assert_ne!(plan_destruction(&existing).hash, plan_destruction(&existing[1..]).hash);
}
