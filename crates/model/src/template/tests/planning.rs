//! What is planned, why, and in which order.

use super::made::Made;
use super::*;
use crate::resource::Status;

/// The steps that do something: `create a`.
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

fn wish(resources: &str) -> Expanded {
    expanded(&with_resources(resources), json!({}))
}

/// An environment that was made as wished.
fn made(wish: &Expanded) -> Made {
    let mut made = Made::default();
    made.become_(wish);
    made.is_as_wished(wish);
    made
}

#[test]
fn a_shop_through_its_changes() {
    let shop = parse("t", WEB_SHOP).unwrap();
    let at = |given: Value| expanded(&shop, given);
    let mut made = Made::default();
    let order = made.become_(&at(json!({})));
    let names = ["network", "db-password", "bus", "settings", "web-0", "web-1", "migrate"];
    assert_eq!(order, names.map(|name| format!("create {name}")));
    made.is_as_wished(&at(json!({})));

    // Only what a change touches is done.
    let three = at(json!({"replicas": 3}));
    assert_eq!(acts(&made.plan(&three)), ["create web-2"]);
    assert_eq!(made.become_(&three), ["create web-2"]);
    let one = at(json!({"replicas": 1}));
    let plan = made.plan(&one);
    assert_eq!(acts(&plan), ["destroy web-1", "destroy web-2"]);
    assert_eq!(reason(&plan, "web-1").1, "it is in none of the templates any more");
    made.become_(&one);
    let other = at(json!({"replicas": 1, "image": "nginx:2"}));
    let plan = made.plan(&other);
    assert_eq!(acts(&plan), ["replace web-0"]);
    assert_eq!(reason(&plan, "web-0").1, "image differs; that can't be changed in place");
    assert_eq!(made.become_(&other), ["replace web-0", "create web-0"]);

    // What others give may change; whether it has is seen when its turn comes.
    let mut changed = shop.clone();
    changed.resources[0].with["variables"]["cidr"] = json!("10.2.0.0/16");
    let wish = expanded(&changed, json!({"replicas": 1, "image": "nginx:2"}));
    let plan = made.plan(&wish);
    assert_eq!(acts(&plan), ["update network", "update settings"]);
    assert_eq!(reason(&plan, "network").1, "variables differs");
    assert_eq!(reason(&plan, "settings").1, "what network gives may change");
    assert_eq!(made.become_(&wish), ["update network"]);
    changed.resources[1].with["instance_type"] = json!("standard");
    let wish = expanded(&changed, json!({"replicas": 1, "image": "nginx:2"}));
    assert_eq!(acts(&made.plan(&wish)), ["replace bus", "update settings"]);
    made.become_(&wish);
    made.is_as_wished(&wish);

    let end = plan_destruction(&made.exists());
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
    assert_eq!(reason(&end, "bus").1, "the environment shall not be there any more");
}

/// What is made with `before` and shall be as in `now`.
#[track_caller]
fn change(before: &str, now: &str, expect: (Act, &str)) {
    let made = made(&wish(before));
    let plan = made.plan(&wish(now));
    assert_eq!(reason(&plan, "a"), expect, "{before} → {now}");
}

#[test]
fn what_differs_decides() {
    let one = |executor: &str, with: &str| {
        format!("  - {{name: a, executor: {executor}, with: {{{with}}}}}\n")
    };
    let not = "that can't be changed in place";
    for (executor, before, now, act, why) in [
        ("command", "url: x", "url: x", Act::Nothing, "it is as it should be"),
        ("command", "url: x", "url: y", Act::Update, "url differs"),
        ("command", "url: x", "url: x, name: n", Act::Update, "name differs"),
        ("command", "url: x, name: n", "url: x", Act::Update, "name differs"),
        ("command", "url: x", "url: y, cpu: 1, ram: 1", Act::Update, "cpu, ram and url differ"),
        (
            "command",
            "url: x",
            "url: '{{ \"x\" }}'",
            Act::Nothing,
            "its expressions give the same as before",
        ),
        ("command", "url: x", "url: '{{ environment.name }}'", Act::Update, "url differs"),
        ("terraform", "source: ./a", "source: ./b", Act::Update, "source differs"),
        ("consul-kv", "prefix: a", "prefix: a, values: {b: c}", Act::Update, "values differs"),
        ("consul-kv", "prefix: a", "prefix: b", Act::Replace, "prefix differs; {not}"),
        ("vault-secret", "path: a", "path: a, values: {b: c}", Act::Update, "values differs"),
        ("vault-secret", "path: a", "path: b, values: {b: c}", Act::Replace, "path differs; {not}"),
        ("service", "kind: a", "kind: b, region: r", Act::Replace, "kind and region differ; {not}"),
        ("deployment", "replicas: 1", "replicas: 2", Act::Update, "replicas differs"),
        (
            "deployment",
            "replicas: 1",
            "replicas: 2, image: x",
            Act::Replace,
            "image differs; {not}",
        ),
    ] {
        let why = why.replace("{not}", not);
        change(&one(executor, before), &one(executor, now), (act, &why));
    }
    let replaced = (Act::Replace, "its executor was command and is consul-kv");
    change(&one("command", "url: x"), &one("consul-kv", "prefix: x"), replaced);
}

#[test]
fn the_files_of_a_module_count() {
    let template = with_resources(
        "  - {name: a, executor: terraform, with: {source: ./a}}\n  - {name: b, executor: command, \
         with: {url: x}}\n",
    );
    let at = |files_print: &str| {
        expand(&[Source { template: &template, files_print }], &Map::new()).unwrap()
    };
    let plan = made(&at("1")).plan(&at("2"));
    assert_eq!(reason(&plan, "a"), (Act::Update, "the files of its template differ"));
    assert_eq!(reason(&plan, "b").0, Act::Nothing);
}

const CHAIN: &str = "  - {name: a, executor: command, with: {url: 'x'}}\n  \
    - {name: b, executor: command, with: {url: '{{ a.told.url }}'}}\n  \
    - {name: c, executor: deployment, with: {image: '{{ b.told.url }}'}}\n";

#[test]
fn what_others_give_is_followed_as_far_as_it_goes() {
    let before = wish(CHAIN);
    let mut there = made(&before);
    let after = wish(&CHAIN.replace("'x'", "'y'"));
    let plan = there.plan(&after);
    assert_eq!(reason(&plan, "b"), (Act::Update, "what a gives may change"));
    let may = "what b gives may change; if it does, this is replaced";
    assert_eq!(reason(&plan, "c"), (Act::Update, may));
    let done = there.become_(&after);
    assert_eq!(done, ["update a", "update b", "replace c", "create c"]);
    there.is_as_wished(&after);

    // What nobody changed, and gives something else now.
    let mut there = made(&before);
    there.all[0].outputs.insert("told".to_owned(), json!({"url": "z"}));
    let plan = there.plan(&before);
    assert_eq!(reason(&plan, "a").0, Act::Nothing);
    assert_eq!(reason(&plan, "b"), (Act::Update, "url differs"));

    // What is not there can't be known.
    let none = CHAIN.replace("url: 'x'}", "url: 'x'}, count: 0");
    let plan = there.plan(&wish(&none));
    let (act, why) = reason(&plan, "b");
    assert!(
        act == Act::Update && why.starts_with("what it is told is not known yet: url:"),
        "{why}"
    );
}

#[test]
fn what_did_not_come_to_its_end_is_gone_on_with() {
    use Act::{Create, Destroy, Nothing, Replace, Update};
    use Status::{Applied, Applying, Destroying, Drifted, Failed, Pending, Planning};
    let wish = wish("  - {name: a, executor: deployment, with: {image: x}}\n");
    let half = "its destruction began and did not come to its end";
    for (is_made, status, act, is_begun, expect) in [
        (true, Applied, Nothing, true, (Nothing, "it is as it should be")),
        (
            true,
            Drifted,
            Nothing,
            true,
            (Nothing, "it is not as it was made; ask for its repair to have it mended"),
        ),
        (true, Failed, Update, true, (Update, "its last step failed, and is tried again")),
        (true, Planning, Update, true, (Update, "its last step did not come to its end")),
        (true, Applying, Update, true, (Update, "its last step did not come to its end")),
        // It was to be changed or destroyed, and is wanted as it is after all.
        (true, Pending, Update, false, (Update, "its last step did not begin")),
        (true, Pending, Replace, false, (Update, "its last step did not begin")),
        (true, Pending, Destroy, false, (Update, "its last step did not begin")),
        (true, Pending, Destroy, true, (Replace, half)),
        (true, Failed, Destroy, true, (Replace, half)),
        (true, Failed, Replace, true, (Replace, half)),
        (true, Destroying, Destroy, true, (Replace, half)),
        (true, Destroying, Replace, true, (Replace, half)),
        (false, Pending, Create, false, (Create, "it is not there yet")),
        (false, Failed, Create, true, (Create, "its last step failed, and it is made again")),
        (false, Applying, Create, true, (Create, "it was never made to its end")),
        (false, Destroying, Destroy, true, (Create, "it was never made to its end")),
    ] {
        let mut exists = made(&wish).exists();
        if !is_made {
            (exists[0].print, exists[0].applied) = (None, None);
        }
        (exists[0].status, exists[0].act, exists[0].is_begun) = (status, act, is_begun);
        let plan = plan(&wish.nodes, &Context::default(), &exists);
        assert_eq!(reason(&plan, "a"), expect, "{status} {act}");
    }
    let mut exists = made(&wish).exists();
    exists[0].status = Status::Destroyed;
    let plan = plan(&wish.nodes, &Context::default(), &exists);
    assert_eq!(reason(&plan, "a"), (Create, "it is not there yet"));
    assert_eq!(plan_destruction(&exists).steps, []);
}

#[test]
fn what_goes_waits_for_who_needed_it() {
    let one = |name: &str, more: &str| {
        format!("  - {{name: {name}, executor: deployment, with: {{image: x}}{more}}}\n")
    };
    // `user` does without `old` from now on.
    let before = [one("old", ""), one("user", ", depends_on: [old]")].concat();
    let there = made(&wish(&before));
    let plan = there.plan(&wish(&one("user", "")));
    assert_eq!(acts(&plan), ["destroy old"]);
    assert_eq!(after(&plan, "old"), ["user"]);

    // What is replaced waits for what needs it and goes for good.
    let before = [one("base", ""), one("mid", ", depends_on: [base]")].concat()
        + &one("top", ", depends_on: [mid]");
    let mut there = made(&wish(&before));
    let now = wish(&one("base", "").replace("image: x", "image: y"));
    let plan = there.plan(&now);
    assert_eq!(acts(&plan), ["destroy top", "destroy mid", "replace base"]);
    assert_eq!(after(&plan, "base"), ["mid"]);
    let done = there.become_(&now);
    assert_eq!(done, ["destroy top", "destroy mid", "replace base", "create base"]);
    there.is_as_wished(&now);

    // Nothing is left, and yet the environment is there.
    let plan = there.plan(&wish(&one("base", ", count: 0")));
    assert_eq!(reason(&plan, "base"), (Act::Destroy, "it is in none of the templates any more"));
}

/// What is set in something, and how.
type Set<T> = (&'static str, fn(&mut T));

#[test]
fn a_plan_s_hash_names_the_world_and_the_wish() {
    let before = wish(CHAIN);
    let there = made(&before);
    let hash_of = |nodes: &[Node], exists: &[Existing]| {
        let context = Context { parameters: Map::new(), ..there.context(&before) };
        plan(nodes, &context, exists).hash
    };
    let (nodes, exists) = (before.nodes.clone(), there.exists());
    let hash = hash_of(&nodes, &exists);
    assert_eq!(hash.len(), 64);
    let (mut other_nodes, mut other_exists) = (nodes.clone(), exists.clone());
    other_nodes.reverse();
    other_exists.swap(0, 2);
    assert_eq!(hash_of(&other_nodes, &other_exists), hash);

    let worlds: [Set<Existing>; 9] = [
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
    for (what, set) in worlds {
        let mut exists = exists.clone();
        set(&mut exists[0]);
        hashes.push(hash_of(&nodes, &exists));
        assert!(!hashes[..hashes.len() - 1].contains(hashes.last().unwrap()), "{what}");
    }
    let wishes: [Set<Node>; 7] = [
        ("name", |one| one.name = "z".to_owned()),
        ("print", |one| one.print = "p".to_owned()),
        ("template", |one| one.template = "t@2".to_owned()),
        ("description", |one| one.description = "d".to_owned()),
        ("tags", |one| drop(one.tags.insert("k".to_owned(), "v".to_owned()))),
        ("health", |one| one.health = Some("http://x".to_owned())),
        ("after", |one| one.after.clear()),
    ];
    for (what, set) in wishes {
        let mut nodes = nodes.clone();
        set(&mut nodes[2]);
        hashes.push(hash_of(&nodes, &exists));
        assert!(!hashes[..hashes.len() - 1].contains(hashes.last().unwrap()), "{what}");
    }
    assert_ne!(plan_destruction(&exists).hash, hashes[0]);
    assert_ne!(plan_destruction(&exists).hash, plan_destruction(&exists[1..]).hash);
}
