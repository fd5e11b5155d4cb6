//! What templates are refused for, each with its place.

use super::*;

#[track_caller]
fn refused(text: &str, expect: &str) {
    let text = if text.contains("name: t\n") {
        text.to_owned()
    } else {
        format!("name: t\nversion: '1'\n{text}")
    };
    let refused = parse("t.yaml", &text).expect_err(&text).to_string();
    assert!(refused.contains(expect), "{text}\nexpected: {expect}\nfound:    {refused}");
}

#[test]
fn identity() {
    refused("name: t\nversion: ''\n", "t.yaml:2: version: a version has 1 to 64");
    refused("name: t\nversion: 1/2\n", "t.yaml:2: version:");
    refused("{name: T, version: '1'}#name: t\n", "t.yaml:1: name: 1 to 63 of a-z");
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

#[test]
fn large_templates_are_refused() {
    let many: String = (0..2001)
        .map(|i| format!("  - {{name: r{i}, executor: command, with: {{url: x}}}}\n"))
        .collect();
    refused(&format!("resources:\n{many}"), "resources: 2001; at most 2000");
    let names: Vec<String> = (0..600).map(|i| format!("r{i}")).collect();
    let group = format!("groups: [{{name: g, resources: [{}]}}]\n", names.join(", "));
    let first: String = (0..600)
        .map(|i| format!("  - {{name: r{i}, executor: command, with: {{url: x}}}}\n"))
        .collect();
    let second: String = (0..400)
        .map(|i| {
            format!("  - {{name: s{i}, executor: command, with: {{url: x}}, depends_on: [g]}}\n")
        })
        .collect();
    refused(&format!("{group}resources:\n{first}{second}"), "more than 200000 dependencies");
}
