//! What templates are refused for, each with its place.

use super::*;

#[track_caller]
fn refused(text: &str, expect: &str) {
    let text = if text.contains("name: t\n") {
        text.to_owned()
    } else {
        format!("name: t\nversion: '1'\n{text}")
    };
    let begin: String = text.chars().take(500).collect();
    let refused = parse("t.yaml", &text).expect_err(&begin).to_string();
    assert!(refused.contains(expect), "{begin}\nexpected: {expect}\nfound:    {refused}");
}

#[test]
fn identity() {
    refused("name: t\nversion: ''\n", "t.yaml:2: version: a version has 1 to 64");
    refused("name: t\nversion: 1/2\n", "t.yaml:2: version:");
    refused("{name: T, version: '1'} #name: t\n", "t.yaml:1: name: 1 to 63 of a-z");
    refused("tags: {'a b': c}\n", "t.yaml:3: tags.a b: a label's key");
    refused("tag: {a: b}\n", "t.yaml:3: unknown field `tag`");
}

#[test]
fn parameters() {
    let cases = [
        ("{A: {type: string}}", "parameters.A: a parameter's name begins with a-z"),
        ("{index: {type: string}}", "index means something else"),
        ("{not: {type: string}}", "not means something else"),
        ("{a: {type: text}}", "unknown variant"),
        ("{a: {type: string, minimum: 1}}", "parameters.a.minimum: is for numbers only"),
        ("{a: {type: integer, min_length: 1}}", "parameters.a.min_length: is for texts and lists"),
        ("{a: {type: integer, minimum: 3, maximum: 2}}", "parameters.a.maximum: must not be below"),
        ("{a: {type: list, min_length: 3, max_length: 2}}", "a.max_length: must not be below"),
        ("{a: {type: boolean, default: 'yes'}}", "parameters.a.default: must be true or false"),
        ("{a: {type: map, default: []}}", "parameters.a.default: must be a map"),
        ("{a: {type: list, default: {}}}", "parameters.a.default: must be a list"),
        ("{a: {type: number, default: '1'}}", "parameters.a.default: must be a number"),
        ("{a: {type: string, default: 1}}", "parameters.a.default: must be a text"),
        ("{a: {type: integer, default: x}}", "parameters.a.default: must be a whole number"),
        ("{a: {type: integer, default: 1.5}}", "parameters.a.default: must be a whole number"),
        ("{a: {type: integer, default: 9, maximum: 8}}", "a.default: must be at most 8"),
        ("{a: {type: string, default: ab, max_length: 1}}", "at most 1 characters"),
        ("{a: {type: list, default: [], min_length: 1}}", "at least 1 entries"),
        ("{a: {type: string, one_of: []}}", "a.one_of: must have at least one"),
        ("{a: {type: string, one_of: [x, 1]}}", "one_of[1]: must be a text"),
        ("{a: {type: string, one_of: [x], default: y}}", "a.default: must be one of \"x\""),
    ];
    for (text, expect) in cases {
        refused(&format!("parameters: {text}\n"), expect);
        refused(&format!("parameters: {text}\n"), "t.yaml:3: ");
    }
    refused("parameters: {a: {type: number, minimum: .nan}}\n", "a.minimum: must be a number");
    refused("parameters: {a: {type: number, maximum: .inf}}\n", "a.maximum: must be a number");
}

const A: &str = "  - {name: a, executor: command, with: {url: 'http://a/'}}\n";

#[test]
fn names() {
    let two = format!("resources:\n{A}{A}");
    refused(&two, "t.yaml:5: resources.a.name: \"a\" is there twice");
    refused(&format!("resources:\n{A}needs: [a]\n"), "t.yaml:5: needs[0]: \"a\" is there twice");
    refused(
        &format!("resources:\n{A}groups: [{{name: a, resources: []}}]\n"),
        "\"a\" is there twice",
    );
    refused(&format!("resources:\n{A}actions: [{{name: a}}]\n"), "\"a\" is there twice");
    let clash =
        "parameters: {a_b: {type: string}}\nresources:\n  - {name: a-b, executor: command}\n";
    refused(clash, "t.yaml:5: resources.a-b.name: a-b is a parameter, too");
    refused("resources: [{name: index, executor: command}]\n", "index means something else");
    refused("resources: [{name: A_b, executor: command}]\n", "1 to 63 of a-z");
    let counted =
        format!("resources:\n{A}  - {{name: a-1, executor: command, with: {{url: b}}}}\n");
    refused(
        &counted.replacen("with", "count: 2, with", 1),
        "t.yaml:4: resources.a.count: one of several is called a-1",
    );
    refused("resources: [{name: a, executor: bash}]\n", "unknown variant `bash`, expected one of");
    refused("resources: [{name: a, executor: bash}]\n", "vault-secret");
    refused(
        &format!("resources:\n{A}groups: [{{name: g, resources: [b]}}]\n"),
        "groups.g.resources[0]: there is no resource or group b; there are a, g",
    );
    let unknown = A.replace("with", "depends_on: [x], with");
    refused(
        &format!("resources:\n{unknown}"),
        "t.yaml:4: resources.a.depends_on[0]: there is no resource or group x",
    );
    refused(
        &format!("resources:\n{A}actions: [{{name: m}}]\n"),
        "actions.m: must have one of app, secret and certificate",
    );
    refused(
        &format!("resources:\n{A}actions: [{{name: m, app: {{url: x}}, after: [y]}}]\n"),
        "actions.m.after[0]: there is no",
    );
}

#[test]
fn counts() {
    for (count, expect) in [
        ("-1", "must be a whole number from 0 to 1000"),
        ("1001", "must be a whole number from 0 to 1000"),
        ("two", "must be a whole number from 0 to 1000"),
        ("'{{ x }}'", "there is no parameter or resource x"),
        ("'{{ b.n }}'", "how many there are is known before b is"),
        ("'{{ index }}'", "index is known only"),
        ("'{{ environment.name | length }}'", "is known before environment is; use parameters"),
        ("'3'", "must be a whole number from 0 to 1000, and is \"3\""),
        ("1.5", "must be a whole number from 0 to 1000"),
        ("[1]", "must be a whole number from 0 to 1000"),
    ] {
        let text = format!(
            "resources:\n  - {{name: b, executor: command, with: {{url: b}}}}\n{}",
            A.replace("with", &format!("count: {count}, with"))
        );
        refused(&text, expect);
        refused(&text, "t.yaml:5: resources.a.count: ");
    }
}

#[test]
fn what_executors_are_told() {
    let cases = [
        ("terraform", "{}", "with: terraform must have source"),
        (
            "terraform",
            "{source: ./a, sources: b}",
            "with.sources: terraform has no such field; it has source, variables",
        ),
        (
            "terraform",
            "{source: ./a, x: '{{ environment.id }}'}",
            "with.x: terraform has no such field",
        ),
        ("terraform", "{source: ../a}", "with.source: must be a folder among the template's files"),
        ("terraform", "{source: ./a/../../b}", "with.source: must be a folder"),
        ("terraform", "{source: /etc}", "with.source: must be a folder"),
        ("terraform", "{source: ./}", "with.source: must be a folder"),
        ("terraform", "{source: ./a, timeout_seconds: 0}", "with.timeout_seconds: must be from 1"),
        ("consul-kv", "{prefix: ''}", "with.prefix: must not be empty"),
        ("consul-kv", "{prefix: /a}", "with.prefix: must not be empty nor begin with /"),
        ("consul-kv", "{prefix: a/, values: {/b: c}}", "a//b must not have // in it"),
        ("vault-secret", "{path: ''}", "with.path: must be a path"),
        ("vault-secret", "{path: a/../b}", "with.path: must be a path"),
        (
            "vault-secret",
            "{path: a, generate: {p: {length: 0}}}",
            "with.generate.p.length: must be from 1 to 1024",
        ),
        (
            "vault-secret",
            "{path: a, generate: {p: {length: x}}}",
            "with.generate.p.length: invalid type",
        ),
        (
            "vault-secret",
            "{path: a, generate: {p: {alphabet: aa}}}",
            "with.generate.p.alphabet: must have at least two",
        ),
        (
            "vault-secret",
            "{path: a, certificate: {role: r}}",
            "with.certificate: missing field `common_name`",
        ),
        ("service", "{kind: k, plan: a.x1, instance_type: a}", "with.plan: names the type already"),
        ("deployment", "{cpu: many}", "with.cpu: not an amount"),
        ("deployment", "{resources: {gpu: -1}}", "with.resources.gpu: an amount can't be negative"),
        ("deployment", "{resources: {GPU: 1}}", "with.resources: \"GPU\" is no resource type"),
        ("deployment", "{replicas: 0}", "with.replicas: 0 is not allowed"),
        ("deployment", "{ports: [0]}", "with.ports[0]: must be from 1"),
        ("command", "{name: x}", "with: command must have url"),
        ("command", "{url: image, method: GET}", "with.method: is for addresses only"),
        ("command", "{url: 'http://a', method: BREW}", "with.method: must be one of GET"),
    ];
    for (executor, with, expect) in cases {
        let text = format!("resources:\n  - name: a\n    executor: {executor}\n    with: {with}\n");
        refused(&text, expect);
        refused(&text, "t.yaml:6: resources.a.with");
    }
    let action = "actions:\n  - name: a\n    certificate: {path: x, role: r}\n";
    refused(action, "t.yaml:5: actions.a.certificate: missing field `common_name`");
    let action = "actions:\n  - name: a\n    certificate: {path: /, role: r, common_name: c}\n";
    refused(action, "t.yaml:5: actions.a.certificate.path: must be a path");
}

#[test]
fn cycles_are_shown() {
    let one = |name: &str, more: &str| format!("  - {{name: {name}, executor: command, {more}}}\n");
    let a = one("a", "depends_on: [b], with: {url: x}");
    let b = one("b", "depends_on: [c], with: {url: x}");
    let c = one("c", "with: {url: 'http://{{ a.host }}/'}");
    refused(
        &format!("resources:\n{a}{b}{c}"),
        "t.yaml:4: resources.a.depends_on: they wait for each other: a → b → c → a",
    );
    let own = one("a", "depends_on: [g], with: {url: x}");
    refused(
        &format!("resources:\n{own}groups: [{{name: g, resources: [a]}}]\n"),
        "they wait for each other: a → a",
    );
    let itself = one("a", "with: {url: '{{ a.url }}'}");
    refused(&format!("resources:\n{itself}"), "resources.a.with.url: a does not know itself");
    refused(
        "groups:\n  - {name: g, resources: [h]}\n  - {name: h, resources: [g]}\n",
        "t.yaml:4: groups.g.resources: groups contain each other: g → h → g",
    );
    let waits = format!(
        "resources:\n{}actions: [{{name: m, app: {{url: x}}}}]\n",
        one("a", "with: {url: '{{ m.x }}'}")
    );
    refused(&waits, "t.yaml:4: resources.a.with.url: they wait for each other: a → m → a");
}

/// So many resources that nothing is special about.
fn many(count: usize, prefix: &str, more: &str) -> String {
    (0..count).fold(String::new(), |all, i| {
        all + &format!("  - {{name: {prefix}{i}, executor: command, with: {{url: x}}{more}}}\n")
    })
}

#[test]
fn large_templates_are_refused() {
    let resources = many(2001, "r", "");
    refused(&format!("resources:\n{resources}"), "resources: 2001; at most 2000");
    let names: Vec<String> = (0..600).map(|i| format!("r{i}")).collect();
    let group = format!("groups: [{{name: g, resources: [{}]}}]\n", names.join(", "));
    let (first, second) = (many(600, "r", ""), many(400, "s", ", depends_on: [g]"));
    refused(&format!("{group}resources:\n{first}{second}"), "more than 200000 dependencies");
    let long = format!("'{{{{ environment.id }}}}{}'", "x".repeat(1 << 20));
    let text = format!("resources: [{{name: a, executor: command, with: {{url: {long}}}}}]\n");
    refused(&text, "at most 64 KiB");
}

/// What would take gigabytes if it were taken apart before it is looked at.
#[test]
fn bombs_of_groups_are_refused_or_harmless() {
    let names: Vec<String> = (0..1900).map(|i| format!("r{i}")).collect();
    let group = format!("groups: [{{name: g, resources: [{}]}}]\n", names.join(", "));
    let resources = many(1900, "r", "");
    let again = vec!["g"; 30_000].join(", ");
    let last =
        format!("  - {{name: last, executor: command, with: {{url: x}}, depends_on: [{again}]}}\n");
    let text = format!("name: t\nversion: '1'\n{group}resources:\n{resources}{last}");
    let template = parse("t.yaml", &text).unwrap();
    let expanded = expand(&[Source { template: &template, files_print: "" }], &Map::new());
    assert_eq!(expanded.unwrap().nodes.last().unwrap().after.len(), 1900);

    let names = names[..300].join(", ");
    let nested = (0..800).fold(String::new(), |all, i| match i {
        0 => format!("  - {{name: g0, resources: [{names}]}}\n"),
        i => all + &format!("  - {{name: g{i}, resources: [g{}]}}\n", i - 1),
    });
    refused(&format!("groups:\n{nested}resources:\n{resources}"), "more than 200000 dependencies");
}

#[test]
fn documents_that_are_no_templates_are_refused() {
    refused("name: t\nversion: '1'\nname: u\n", "t.yaml:3: duplicate mapping key: name");
    refused("resources:\n  - {name: a, executor: command, with: {url: x, url: y}}\n", "duplicate");
    refused("resources: [{name: a, name: b, executor: command}]\n", "duplicate mapping key: name");
    refused("parameters: {a: {type: string}, a: {type: list}}\n", "duplicate mapping key: a");
    refused("resources: [{name: a, executor: Terraform}]\n", "unknown variant `Terraform`");
    refused("resources: [{name: a, executor: command, whit: {}}]\n", "unknown field `whit`");
    refused("actions: [{name: a, when: always}]\n", "unknown field `when`");
    refused("groups: [{name: a, members: []}]\n", "unknown field `members`");
    refused("parameters: {a: {type: string, secret: true}}\n", "unknown field `secret`");
    refused("resources: {a: {executor: command}}\n", "resources");
    refused("resources: [{name: a, executor: command, with: [1]}]\n", "with");
    refused("resources: [{name: a, executor: !!python/object:os.system command}]\n", "tag");
    refused(
        "resources: [{name: a, executor: command, with: {url: x, '{{ y }}': z}}]\n",
        "in names",
    );
    for text in ["", "---\n", "[]\n", "just a text\n", "name: t\n", "\0", "{", "name: [\n"] {
        assert!(parse("t.yaml", text).is_err(), "{text:?}");
    }
}

#[test]
fn bombs_are_refused() {
    let mut laughs = String::from("parameters:\n  a0: {type: list, default: &b0 [x, x, x]}\n");
    for i in 1..12 {
        let alias = vec![format!("*b{}", i - 1); 9].join(", ");
        laughs = format!("{laughs}  a{i}: {{type: list, default: &b{i} [{alias}]}}\n");
    }
    refused(&laughs, "too large or too complex");
    // Few aliases of much text.
    let text = format!("description: &a {}\n", "x".repeat(1 << 20));
    let aliases = vec!["*a"; 15_000].join(", ");
    let resource = format!("{{name: a, executor: command, with: {{url: x, body: [{aliases}]}}}}");
    refused(&format!("{text}resources: [{resource}]\n"), "too large or too complex");
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let deep = format!("{}{}", open.repeat(500), close.repeat(500));
        let text = format!("resources: [{{name: a, executor: command, with: {{url: {deep}}}}}]\n");
        assert!(parse("t.yaml", &format!("name: t\nversion: '1'\n{text}")).is_err());
    }
    let itself = "resources: [{name: a, executor: command, with: &a {url: x, body: *a}}]\n";
    refused(itself, "Recursive reference");
}
