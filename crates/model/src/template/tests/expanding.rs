//! Expansion of templates and parameters to nodes.

use super::*;

/// A minimal resource.
fn resource(name: &str, more: &str) -> String {
    format!("  - {{name: {name}, executor: command, with: {{url: x}}{more}}}\n")
}

fn template(name: &str, text: &str) -> Template {
    let text = format!("name: {name}\nversion: '1'\n{text}");
    parse("t.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn expand_all(templates: &[&Template], given: Value) -> Result<Expanded, Invalid> {
    let sources: Vec<_> =
        templates.iter().map(|template| Source { template, files_print: "" }).collect();
    expand(&sources, &map(given))
}

/// The nodes and their dependencies.
fn shape(expanded: &Expanded) -> Vec<(&str, Vec<&str>)> {
    expanded
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.after.iter().map(String::as_str).collect()))
        .collect()
}

#[track_caller]
fn rejects(templates: &[&Template], given: Value, expect: &str) {
    let error = expand_all(templates, given).expect_err(expect).to_string();
    assert!(error.contains(expect), "expected: {expect}\nfound:    {error}");
}

#[test]
fn explicit_and_implicit_dependencies_come_first() {
    let text = [
        "groups:\n  - {name: all, resources: [low, c]}\n  - {name: low, resources: [a, b]}\n",
        "resources:\n",
        &resource("top", ", depends_on: [all]"),
        "  - {name: user, executor: command, with: {url: 'http://{{ a_b.host }}/{{ b.x }}'}}\n",
        &resource("a", ""),
        &resource("b", ", depends_on: [a]"),
        &resource("c", ", status: {http: 'http://{{ c.host }}/{{ a.x }}'}"),
        &resource("a-b", ", depends_on: [low, a, a, low]"),
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
fn actions_run_after_named_or_all_resources() {
    let text = format!(
        "resources:\n{}{}groups: [{{name: g, resources: [a]}}]\nactions:\n{}{}{}",
        resource("a", ""),
        resource("b", ""),
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
    let configuration =
        json!({"path": "c", "mount": "kv", "certificate": {"role": "r", "common_name": "x"}});
    assert_eq!(Value::Object(paper.with.clone()), configuration);
}

#[test]
fn count_expands_to_indexed_names() {
    let text = |count: &str| {
        format!(
            "parameters: {{n: {{type: integer, default: 2}}, on: {{type: boolean, default: true}}}}\n\
             resources:\n{}{}",
            resource("a", &format!(", count: {count}")),
            resource("b", ", depends_on: [a]")
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
    let path = "resources.a.count: must be a whole number from 0 to 1000, got ";
    rejects(&[&counted], json!({"n": -1}), &format!("{path}-1"));
    rejects(&[&counted], json!({"n": 1001}), &format!("{path}1001"));
    rejects(&[&template("t", &text("'{{ on }}'"))], json!({}), &format!("{path}true"));
    rejects(&[&template("t", &text("'{{ n / 2 }}'"))], json!({}), &format!("{path}1.0"));
    rejects(&[&template("t", &text("'{{ n }}{{ n }}'"))], json!({}), &format!("{path}\"22\""));
}

#[test]
fn count_expands_to_indexed_nodes() {
    let text =
        "resources:\n  - {name: a, executor: command, count: 2, with: {url: 'x{{ index }}'}}\n";
    let expanded = expanded(&template("t", text), json!({}));
    let urls: Vec<Value> = expanded
        .nodes
        .iter()
        .map(|node| fill(node, &Context::default()).unwrap()["url"].clone())
        .collect();
    assert_eq!(urls, [json!("x0"), json!("x1")]);
    assert_ne!(expanded.nodes[0].print, expanded.nodes[1].print);
}

#[test]
fn expansion_size_is_limited() {
    let counted = |resources: usize, more: &str| {
        let all: String = (0..resources)
            .map(|i| resource(&format!("r{i}"), &format!(", count: 1000{more}")))
            .collect::<Vec<_>>()
            .concat();
        template("t", &format!("resources:\n{all}"))
    };
    assert_eq!(expanded(&counted(20, ""), json!({})).nodes.len(), 20_000);
    rejects(&[&counted(21, "")], json!({}), "they expand to 21000 resources; at most 20000");
    let text = format!(
        "resources:\n{}{}",
        resource("a", ", count: 1000"),
        resource("b", ", count: 201, depends_on: [a]")
    );
    rejects(&[&template("t", &text)], json!({}), "more than 200000 dependencies");
    // The configuration is stored once per instance.
    let long = "x".repeat(200 << 10);
    let text = format!(
        "resources:\n  - {{name: a, executor: command, count: 1000, with: {{url: 'http://x', \
         body: '{long}'}}}}\n"
    );
    rejects(&[&template("t", &text)], json!({}), "exceeds 64 MiB; lower counts");
}

fn data() -> Template {
    let resources = format!("{}{}", resource("bus", ""), resource("db", ", count: 2"));
    template("data", &format!("resources:\n{resources}"))
}

#[test]
fn templates_reference_outputs_of_other_templates() {
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
    let reversed = expand_all(&[&data, &web], json!({})).unwrap();
    assert_eq!(sorted(&both), sorted(&reversed));
    let host = json!({"host": "bus.local"});
    let outputs = ["bus", "db-0", "db-1"].map(|name| (name.to_owned(), map(host.clone())));
    let context = Context { outputs: outputs.into(), ..Context::default() };
    let configuration = json!({"url": "http://bus.local", "env": {"DB": 2}});
    assert_eq!(Value::Object(fill(&both.nodes[3], &context).unwrap()), configuration);

    rejects(
        &[&web],
        json!({}),
        "templates[0]: web@1 needs bus from another template, and none declares",
    );
    rejects(&[&web, &web], json!({}), "templates[1]: web is listed twice");
}

#[test]
fn clashing_templates_are_rejected() {
    let data = data();
    let same = template("same", &format!("resources:\n{}", resource("bus", "")));
    rejects(
        &[&data, &same],
        json!({}),
        "templates: bus is declared by data@1 and by same@1; names",
    );
    let numbered = template("numbered", &format!("resources:\n{}", resource("db-7", "")));
    rejects(
        &[&numbered, &data],
        json!({}),
        "db of data@1 has a count, and an instance of it could be named db-7, which numbered@1",
    );
    let parameter = template("p", "parameters: {bus: {type: string, default: x}}\n");
    rejects(&[&data, &parameter], json!({}), "bus is a resource in data@1 and a parameter in");
}

#[test]
fn cycle_across_templates_is_rejected() {
    let a =
        template("a", &format!("needs: [y]\nresources:\n{}", resource("x", ", depends_on: [y]")));
    let b =
        template("b", &format!("needs: [z]\nresources:\n{}", resource("y", ", depends_on: [z]")));
    let c = template(
        "c",
        "needs: [x]\nresources:\n  - {name: z, executor: command, with: {url: '{{ x.host }}'}}\n",
    );
    rejects(&[&a, &b, &c], json!({}), "templates: dependency cycle: x → y → z → x");
}

#[test]
fn parameter_values_match_type_and_constraints() {
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
        ("text", json!(12), "must be a string"),
        ("text", json!(null), "must be a string"),
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
        ("map", json!({"a": "x".repeat(70 << 10)}), "must not exceed 64 KiB"),
    ] {
        let mut given = map(json!({"text": "ab"}));
        given.insert(name.to_owned(), value.clone());
        let error = values(Value::Object(given)).expect_err(expect).to_string();
        assert_eq!(error, format!("parameters.{name}: {expect}"), "{value}");
    }
}

#[test]
fn all_parameter_errors_are_reported_at_once() {
    let t = template("t", "parameters: {a: {type: string}, b: {type: integer}, c: {type: list}}\n");
    let error = expand_all(&[&t], json!({"b": "x", "c": [], "d\n": 1})).unwrap_err();
    let fields: Vec<&str> = error.0.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["parameters.a", "parameters.b", "parameters.d\\n"]);
    assert_eq!(error.0[0].detail, "is required: a string without a default");
    assert_eq!(error.0[2].detail, "unknown parameter; available: a, b, c");
}

#[test]
fn shared_parameter_satisfies_constraints_of_all_templates() {
    let strict = template("strict", "parameters: {a: {type: integer, maximum: 3}}\n");
    let loose = template("loose", "parameters: {a: {type: integer, default: 5}}\n");
    for order in [[&strict, &loose], [&loose, &strict]] {
        rejects(&order, json!({}), "parameters.a: must be at most 3");
        let values = expand_all(&order, json!({"a": 2})).unwrap().parameters;
        assert_eq!(values, map(json!({"a": 2})));
    }
    let text = template("text", "parameters: {a: {type: string}}\n");
    rejects(&[&text, &loose], json!({}), "parameters.a: must be a string");
}

#[test]
fn design_example_is_expanded_and_planned() {
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
    rejects(&shop, json!({"replicas": 10}), "parameters.replicas: must be at most 9");
    rejects(&shop, json!({"replicas": 0}), "parameters.replicas: must be at least 1");
    rejects(&shop, json!({"replica": 1}), "parameters.replica: unknown parameter");
}
