//! From templates and parameters to nodes.

use super::*;

/// A resource that is told nothing special.
fn one(name: &str, more: &str) -> String {
    format!("  - {{name: {name}, executor: command, with: {{url: x}}{more}}}\n")
}

fn template(name: &str, text: &str) -> Template {
    let text = format!("name: {name}\nversion: '1'\n{text}");
    parse("t.yaml", &text).unwrap_or_else(|refused| panic!("{refused}\n{text}"))
}

fn expand_all(templates: &[&Template], given: Value) -> Result<Expanded, Invalid> {
    let sources: Vec<_> =
        templates.iter().map(|template| Source { template, files_print: "" }).collect();
    expand(&sources, &map(given))
}

/// The nodes and what each comes after.
fn shape(expanded: &Expanded) -> Vec<(&str, Vec<&str>)> {
    expanded
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.after.iter().map(String::as_str).collect()))
        .collect()
}

#[track_caller]
fn refused(templates: &[&Template], given: Value, expect: &str) {
    let error = expand_all(templates, given).expect_err(expect).to_string();
    assert!(error.contains(expect), "expected: {expect}\nfound:    {error}");
}

#[test]
fn what_is_said_and_what_is_used_come_first() {
    let text = [
        "groups:\n  - {name: all, resources: [low, c]}\n  - {name: low, resources: [a, b]}\n",
        "resources:\n",
        &one("top", ", depends_on: [all]"),
        "  - {name: user, executor: command, with: {url: 'http://{{ a_b.host }}/{{ b.x }}'}}\n",
        &one("a", ""),
        &one("b", ", depends_on: [a]"),
        &one("c", ", status: {http: 'http://{{ c.host }}/{{ a.x }}'}"),
        &one("a-b", ", depends_on: [low, a, a, low]"),
    ]
    .concat();
    let expanded = expanded(&template("t", &text), json!({}));
    let expect = [
        ("a", vec![]),
        ("b", vec!["a"]),
        ("c", vec!["a"]),
        ("top", vec!["a", "b", "c"]),
        ("a-b", vec!["a", "b"]),
        ("user", vec!["a-b", "b"]),
    ];
    assert_eq!(shape(&expanded), expect);
    let user = expanded.nodes.last().unwrap();
    assert_eq!(user.outputs_of, ["a-b", "b"].map(String::from).into());
    assert_eq!((user.of.as_str(), user.index, user.template.as_str()), ("user", None, "t@1"));
}

#[test]
fn actions_come_after_what_they_name_or_after_everything() {
    let text = format!(
        "resources:\n{}{}groups: [{{name: g, resources: [a]}}]\nactions:\n{}{}{}",
        one("a", ""),
        one("b", ""),
        "  - {name: first, after: [g], app: {url: x}}\n",
        "  - {name: last, secret: {path: s, generate: {p: {}}}}\n",
        "  - {name: paper, after: [last], certificate: {path: c, role: r, common_name: x, \
         kv_mount: kv}}\n",
    );
    let expanded = expanded(&template("t", &text), json!({}));
    let after: Vec<_> = expanded.nodes.iter().map(|n| (n.name.as_str(), n.after.len())).collect();
    assert_eq!(after, [("a", 0), ("b", 0), ("first", 1), ("last", 2), ("paper", 1)]);
    let paper = expanded.nodes.last().unwrap();
    assert!(paper.is_action && paper.executor == Executor::VaultSecret);
    let told =
        json!({"path": "c", "mount": "kv", "certificate": {"role": "r", "common_name": "x"}});
    assert_eq!(Value::Object(paper.with.clone()), told);
}

#[test]
fn what_is_counted_has_numbers() {
    let text = |count: &str| {
        format!(
            "parameters: {{n: {{type: integer, default: 2}}, on: {{type: boolean, default: true}}}}\n\
             resources:\n{}{}",
            one("a", &format!(", count: {count}")),
            one("b", ", depends_on: [a]")
        )
    };
    let names = |count: &str, given: Value| -> Vec<String> {
        let expanded = expanded(&template("t", &text(count)), given);
        assert_eq!(expanded.nodes.last().unwrap().after.len(), expanded.nodes.len() - 1);
        expanded.nodes.iter().map(|node| node.name.clone()).collect()
    };
    assert_eq!(names("1", json!({})), ["a-0", "b"]);
    assert_eq!(names("3", json!({})), ["a-0", "a-1", "a-2", "b"]);
    assert_eq!(names("0", json!({})), ["b"]);
    assert_eq!(names("'{{ n }}'", json!({})), ["a-0", "a-1", "b"]);
    assert_eq!(names("'{{ n }}'", json!({"n": 1})), ["a-0", "b"]);
    assert_eq!(names("'{{ n - 2 }}'", json!({})), ["b"]);
    assert_eq!(names("'{{ n | times(2) }}'", json!({})).len(), 5);
    assert_eq!(names("'{{ 1 if on else 0 }}'", json!({"on": false})), ["b"]);
    let eleven = names("11", json!({}));
    assert_eq!((eleven[2].as_str(), eleven[10].as_str()), ("a-2", "a-10"));

    let counted = template("t", &text("'{{ n }}'"));
    let path = "resources.a.count: must be a whole number from 0 to 1000, and is ";
    refused(&[&counted], json!({"n": -1}), &format!("{path}-1"));
    refused(&[&counted], json!({"n": 1001}), &format!("{path}1001"));
    refused(&[&template("t", &text("'{{ on }}'"))], json!({}), &format!("{path}true"));
    refused(&[&template("t", &text("'{{ n / 2 }}'"))], json!({}), &format!("{path}1.0"));
    refused(&[&template("t", &text("'{{ n }}{{ n }}'"))], json!({}), &format!("{path}\"22\""));
}

#[test]
fn what_is_counted_knows_its_number_and_is_told_apart() {
    let text =
        "resources:\n  - {name: a, executor: command, count: 2, with: {url: 'x{{ index }}'}}\n";
    let expanded = expanded(&template("t", text), json!({}));
    let told: Vec<Value> = expanded
        .nodes
        .iter()
        .map(|node| fill(node, &Context::default()).unwrap()["url"].clone())
        .collect();
    assert_eq!(told, [json!("x0"), json!("x1")]);
    assert_ne!(expanded.nodes[0].print, expanded.nodes[1].print);
}

#[test]
fn an_environment_is_bounded() {
    let counted = |resources: usize, more: &str| {
        let all: String = (0..resources)
            .map(|i| one(&format!("r{i}"), &format!(", count: 1000{more}")))
            .collect::<Vec<_>>()
            .concat();
        template("t", &format!("resources:\n{all}"))
    };
    assert_eq!(expanded(&counted(20, ""), json!({})).nodes.len(), 20_000);
    refused(&[&counted(21, "")], json!({}), "they come to 21000 resources; at most 20000");
    let text = format!(
        "resources:\n{}{}",
        one("a", ", count: 1000"),
        one("b", ", count: 201, depends_on: [a]")
    );
    refused(&[&template("t", &text)], json!({}), "more than 200000 dependencies");
    // What is said once is kept a thousand times.
    let long = "x".repeat(200 << 10);
    let text = format!(
        "resources:\n  - {{name: a, executor: command, count: 1000, with: {{url: 'http://x', \
         body: '{long}'}}}}\n"
    );
    refused(&[&template("t", &text)], json!({}), "comes to more than 64 MiB; count fewer");
}

fn data() -> Template {
    let resources = format!("{}{}", one("bus", ""), one("db", ", count: 2"));
    template("data", &format!("resources:\n{resources}"))
}

#[test]
fn one_template_uses_what_another_gives() {
    let web = template(
        "web",
        "needs: [bus, db]\nparameters: {n: {type: integer, default: 1}}\n\
         groups: [{name: below, resources: [bus, db]}]\nresources:\n  \
         - {name: web, executor: command, with: {url: 'http://{{ bus.host }}', env: {DB: '{{ \
         db.all | length }}'}}}\n  - {name: more, executor: command, with: {url: x}, depends_on: \
         [below]}\n  - {name: less, executor: command, with: {url: x}, depends_on: [db]}\n\
         entry_points: ['http://{{ web.host }}/']\n",
    );
    let data = data();
    let both = expand_all(&[&web, &data], json!({})).unwrap();
    let expect = [
        ("bus", vec![]),
        ("db-0", vec![]),
        ("db-1", vec![]),
        ("web", vec!["bus", "db-0", "db-1"]),
        ("more", vec!["bus", "db-0", "db-1"]),
        ("less", vec!["db-0", "db-1"]),
    ];
    let sorted = |expanded: &Expanded| {
        let mut nodes = expanded.nodes.clone();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        nodes
    };
    assert_eq!(shape(&both), expect);
    assert_eq!(both.nodes[3].template, "web@1");
    assert_eq!(both.entry_points, ["http://{{ web.host }}/"]);
    let other_way = expand_all(&[&data, &web], json!({})).unwrap();
    assert_eq!(sorted(&both), sorted(&other_way));
    let host = json!({"host": "bus.local"});
    let outputs = ["bus", "db-0", "db-1"].map(|name| (name.to_owned(), map(host.clone())));
    let context = Context { outputs: outputs.into(), ..Context::default() };
    let told = json!({"url": "http://bus.local", "env": {"DB": 2}});
    assert_eq!(Value::Object(fill(&both.nodes[3], &context).unwrap()), told);

    refused(&[&web], json!({}), "templates[0]: web@1 needs bus of another template, and none has");
    refused(&[&web, &web], json!({}), "templates[1]: web is there twice");
}

#[test]
fn templates_must_not_clash() {
    let data = data();
    let same = template("same", &format!("resources:\n{}", one("bus", "")));
    refused(&[&data, &same], json!({}), "templates: bus is in data@1 and in same@1; a name");
    let numbered = template("numbered", &format!("resources:\n{}", one("db-7", "")));
    refused(
        &[&numbered, &data],
        json!({}),
        "db of data@1 is counted, so one of several may be called db-7, and numbered@1 has",
    );
    let parameter = template("p", "parameters: {bus: {type: string, default: x}}\n");
    refused(&[&data, &parameter], json!({}), "bus is a resource in data@1 and a parameter in");
}

#[test]
fn cycles_through_several_templates_are_shown() {
    let a = template("a", &format!("needs: [y]\nresources:\n{}", one("x", ", depends_on: [y]")));
    let b = template("b", &format!("needs: [z]\nresources:\n{}", one("y", ", depends_on: [z]")));
    let c = template(
        "c",
        "needs: [x]\nresources:\n  - {name: z, executor: command, with: {url: '{{ x.host }}'}}\n",
    );
    refused(&[&a, &b, &c], json!({}), "templates: they wait for each other: x → y → z → x");
}

#[test]
fn parameters_have_values_of_their_types() {
    let t = template(
        "t",
        "parameters:\n  text: {type: string, min_length: 2, max_length: 4}\n  \
         whole: {type: integer, minimum: 1, maximum: 9, default: 2}\n  \
         number: {type: number, default: 1.5, maximum: 2}\n  on: {type: boolean, default: false}\n  \
         list: {type: list, default: [1, a], max_length: 3}\n  map: {type: map, default: {a: {b: 1}}}\n  \
         size: {type: string, one_of: [small, large], default: small}\n",
    );
    let values = |given: Value| expand_all(&[&t], given).map(|expanded| expanded.parameters);
    let defaults = json!({"text": "ab", "whole": 2, "number": 1.5, "on": false, "list": [1, "a"],
        "map": {"a": {"b": 1}}, "size": "small"});
    assert_eq!(values(json!({"text": "ab"})).unwrap(), map(defaults));
    let other = json!({"text": "äöüß", "whole": 9, "number": 2, "on": true, "list": [],
        "map": {}, "size": "large"});
    assert_eq!(values(other.clone()).unwrap(), map(other));

    for (name, value, expect) in [
        ("text", json!("a"), "must have at least 2 characters"),
        ("text", json!("äöüßx"), "must have at most 4 characters"),
        ("text", json!(12), "must be a text"),
        ("text", json!(null), "must be a text"),
        ("whole", json!(0), "must be at least 1"),
        ("whole", json!(10), "must be at most 9"),
        ("whole", json!(1.5), "must be a whole number"),
        ("whole", json!(2.0), "must be a whole number"),
        ("whole", json!("2"), "must be a whole number"),
        ("number", json!(2.1), "must be at most 2"),
        ("number", json!("1"), "must be a number"),
        ("on", json!("true"), "must be true or false"),
        ("on", json!(1), "must be true or false"),
        ("list", json!([1, 2, 3, 4]), "must have at most 3 entries"),
        ("list", json!({}), "must be a list"),
        ("map", json!([]), "must be a map"),
        ("size", json!("medium"), "must be one of \"small\", \"large\""),
        ("map", json!({"a": "x".repeat(70 << 10)}), "must have at most 64 KiB"),
    ] {
        let mut given = map(json!({"text": "ab"}));
        given.insert(name.to_owned(), value.clone());
        let error = values(Value::Object(given)).expect_err(expect).to_string();
        assert_eq!(error, format!("parameters.{name}: {expect}"), "{value}");
    }
}

#[test]
fn all_that_is_wrong_with_parameters_is_said_at_once() {
    let t = template("t", "parameters: {a: {type: string}, b: {type: integer}, c: {type: list}}\n");
    let error = expand_all(&[&t], json!({"b": "x", "c": [], "d\n": 1})).unwrap_err();
    let fields: Vec<&str> = error.0.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields, ["parameters.a", "parameters.b", "parameters.d\\n"]);
    assert_eq!(error.0[0].detail, "must be given: a text without a default");
    assert_eq!(error.0[2].detail, "there is no such parameter; there are a, b, c");
}

#[test]
fn a_parameter_of_several_templates_keeps_the_rules_of_all() {
    let strict = template("strict", "parameters: {a: {type: integer, maximum: 3}}\n");
    let loose = template("loose", "parameters: {a: {type: integer, default: 5}}\n");
    for order in [[&strict, &loose], [&loose, &strict]] {
        refused(&order, json!({}), "parameters.a: must be at most 3");
        let values = expand_all(&order, json!({"a": 2})).unwrap().parameters;
        assert_eq!(values, map(json!({"a": 2})));
    }
    let text = template("text", "parameters: {a: {type: string}}\n");
    refused(&[&text, &loose], json!({}), "parameters.a: must be a text");
}

#[test]
fn the_design_s_own_example_is_expanded_and_planned() {
    let shop = parse("web-shop.yaml", DESIGN).unwrap();
    let expanded = expanded(&shop, json!({}));
    let expect = [
        ("network", vec![]),
        ("bus", vec!["network"]),
        ("db-password", vec![]),
        ("settings", vec!["bus"]),
        ("web-0", vec!["bus", "db-password", "settings"]),
        ("web-1", vec!["bus", "db-password", "settings"]),
        ("migrate", vec!["web-0", "web-1"]),
    ];
    assert_eq!(shape(&expanded), expect);
    assert_eq!(expanded.nodes[4].health.as_deref(), Some("http://{{ web.endpoint }}/healthz"));
    let plan = plan(&expanded.nodes, &Context::default(), &[]);
    assert!(plan.steps.iter().all(|step| step.act == Act::Create));
    let shop = [&shop];
    refused(&shop, json!({"replicas": 10}), "parameters.replicas: must be at most 9");
    refused(&shop, json!({"replicas": 0}), "parameters.replicas: must be at least 1");
    refused(&shop, json!({"replica": 1}), "parameters.replica: there is no such parameter");
}
