//! Invalid templates are rejected with the location of the error.

use super::*;

#[track_caller]
fn rejects(text: &str, expect: &str) {
    let text = if text.contains("name: t\n") {
        text.to_owned()
    } else {
        format!("name: t\nversion: '1'\n{text}")
    };
    let begin: String = text.chars().take(500).collect();
    let error = parse("t.yaml", &text).expect_err(&begin).to_string();
    assert!(error.contains(expect), "{begin}\nexpected: {expect}\nfound:    {error}");
}

#[test]
fn identity() {
    rejects("name: t\nversion: ''\n", "t.yaml:2: version: must have 1 to 64");
    rejects("name: t\nversion: 1/2\n", "t.yaml:2: version:");
    rejects(
        "{name: T, version: '1'} #name: t\n",
        "t.yaml:1: name: must have 1 to 63 characters of a-z",
    );
    rejects("tags: {'a b': c}\n", "t.yaml:3: tags.a b: key must have");
    rejects("tag: {a: b}\n", "t.yaml:3: unknown field `tag`");
}

#[test]
fn parameters() {
    let cases = [
        ("{A: {type: string}}", "parameters.A: a parameter name must start with a-z"),
        ("{index: {type: string}}", "index is reserved"),
        ("{not: {type: string}}", "not is reserved"),
        ("{a: {type: text}}", "unknown variant"),
        ("{a: {type: string, minimum: 1}}", "parameters.a.minimum: is only allowed for numbers"),
        (
            "{a: {type: integer, min_length: 1}}",
            "parameters.a.min_length: is only allowed for strings and lists",
        ),
        ("{a: {type: integer, minimum: 3, maximum: 2}}", "parameters.a.maximum: must not be below"),
        ("{a: {type: list, min_length: 3, max_length: 2}}", "a.max_length: must not be below"),
        ("{a: {type: boolean, default: 'yes'}}", "parameters.a.default: must be true or false"),
        ("{a: {type: map, default: []}}", "parameters.a.default: must be a map"),
        ("{a: {type: list, default: {}}}", "parameters.a.default: must be a list"),
        ("{a: {type: number, default: '1'}}", "parameters.a.default: must be a number"),
        ("{a: {type: string, default: 1}}", "parameters.a.default: must be a string"),
        ("{a: {type: integer, default: x}}", "parameters.a.default: must be a whole number"),
        ("{a: {type: integer, default: 1.5}}", "parameters.a.default: must be a whole number"),
        ("{a: {type: integer, default: 9, maximum: 8}}", "a.default: must be at most 8"),
        ("{a: {type: string, default: ab, max_length: 1}}", "at most 1 characters"),
        ("{a: {type: list, default: [], min_length: 1}}", "at least 1 entries"),
        ("{a: {type: string, one_of: []}}", "a.one_of: must have at least one"),
        ("{a: {type: string, one_of: [x, 1]}}", "one_of[1]: must be a string"),
        ("{a: {type: string, one_of: [x], default: y}}", "a.default: must be one of \"x\""),
    ];
    for (text, expect) in cases {
        rejects(&format!("parameters: {text}\n"), expect);
        rejects(&format!("parameters: {text}\n"), "t.yaml:3: ");
    }
    rejects("parameters: {a: {type: number, minimum: .nan}}\n", "a.minimum: must be a number");
    rejects("parameters: {a: {type: number, maximum: .inf}}\n", "a.maximum: must be a number");
}

const A: &str = "  - {name: a, executor: command, with: {url: 'http://a/'}}\n";

#[test]
fn names() {
    let two = format!("resources:\n{A}{A}");
    rejects(&two, "t.yaml:5: resources.a.name: \"a\" is already the name of");
    rejects(
        &format!("resources:\n{A}needs: [a]\n"),
        "t.yaml:5: needs[0]: \"a\" is already the name of",
    );
    rejects(
        &format!("resources:\n{A}groups: [{{name: a, resources: []}}]\n"),
        "\"a\" is already the name of",
    );
    rejects(&format!("resources:\n{A}actions: [{{name: a}}]\n"), "\"a\" is already the name of");
    let clash =
        "parameters: {a_b: {type: string}}\nresources:\n  - {name: a-b, executor: command}\n";
    rejects(clash, "t.yaml:5: resources.a-b.name: a-b is also a parameter");
    rejects("resources: [{name: index, executor: command}]\n", "index is reserved");
    rejects("resources: [{name: A_b, executor: command}]\n", "1 to 63 characters of a-z");
    let counted =
        format!("resources:\n{A}  - {{name: a-1, executor: command, with: {{url: b}}}}\n");
    rejects(
        &counted.replacen("with", "count: 2, with", 1),
        "t.yaml:4: resources.a.count: an instance would be named a-1",
    );
    rejects("resources: [{name: a, executor: bash}]\n", "unknown variant `bash`, expected one of");
    rejects("resources: [{name: a, executor: bash}]\n", "vault-secret");
    rejects(
        &format!("resources:\n{A}groups: [{{name: g, resources: [b]}}]\n"),
        "groups.g.resources[0]: unknown resource or group b; available: a, g",
    );
    let unknown = A.replace("with", "depends_on: [x], with");
    rejects(
        &format!("resources:\n{unknown}"),
        "t.yaml:4: resources.a.depends_on[0]: unknown resource or group x",
    );
    rejects(
        &format!("resources:\n{A}actions: [{{name: m}}]\n"),
        "actions.m: must have exactly one of app, secret and certificate",
    );
    rejects(
        &format!("resources:\n{A}actions: [{{name: m, app: {{url: x}}, after: [y]}}]\n"),
        "actions.m.after[0]: unknown resource or group y",
    );
}

#[test]
fn counts() {
    for (count, expect) in [
        ("-1", "must be a whole number from 0 to 1000"),
        ("1001", "must be a whole number from 0 to 1000"),
        ("two", "must be a whole number from 0 to 1000"),
        ("'{{ x }}'", "unknown parameter or resource x"),
        ("'{{ b.n }}'", "count can't depend on b"),
        ("'{{ index }}'", "index is available only"),
        ("'{{ environment.name | length }}'", "count can't depend on environment; use parameters"),
        ("'3'", "must be a whole number from 0 to 1000, got \"3\""),
        ("1.5", "must be a whole number from 0 to 1000"),
        ("[1]", "must be a whole number from 0 to 1000"),
    ] {
        let text = format!(
            "resources:\n  - {{name: b, executor: command, with: {{url: b}}}}\n{}",
            A.replace("with", &format!("count: {count}, with"))
        );
        rejects(&text, expect);
        rejects(&text, "t.yaml:5: resources.a.count: ");
    }
}

#[test]
fn executor_configurations() {
    let cases = [
        ("terraform", "{}", "with: executor terraform requires source"),
        (
            "terraform",
            "{source: ./a, sources: b}",
            "with.sources: unknown field for executor terraform; expected one of source, variables",
        ),
        (
            "terraform",
            "{source: ./a, x: '{{ environment.id }}'}",
            "with.x: unknown field for executor terraform",
        ),
        (
            "terraform",
            "{source: ../a}",
            "with.source: must be a directory within the template's files",
        ),
        ("terraform", "{source: ./a/../../b}", "with.source: must be a directory"),
        ("terraform", "{source: /etc}", "with.source: must be a directory"),
        ("terraform", "{source: ./}", "with.source: must be a directory"),
        ("terraform", "{source: ./a, timeout_seconds: 0}", "with.timeout_seconds: must be from 1"),
        ("consul-kv", "{prefix: ''}", "with.prefix: must not be empty"),
        ("consul-kv", "{prefix: /a}", "with.prefix: must not be empty or start with /"),
        ("consul-kv", "{prefix: a/, values: {/b: c}}", "a//b must not contain //"),
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
        (
            "service",
            "{kind: k, plan: a.x1, instance_type: a}",
            "with.plan: already includes the type",
        ),
        ("deployment", "{cpu: many}", "with.cpu: must be a number such as"),
        ("deployment", "{resources: {gpu: -1}}", "with.resources.gpu: must not be negative"),
        (
            "deployment",
            "{resources: {GPU: 1}}",
            "with.resources: \"GPU\" is not a valid resource type",
        ),
        ("deployment", "{replicas: 0}", "with.replicas: must be from 1 to 1000"),
        ("deployment", "{ports: [0]}", "with.ports[0]: must be from 1"),
        ("command", "{name: x}", "with: executor command requires url"),
        ("command", "{url: image, method: GET}", "with.method: is only allowed for HTTP calls"),
        ("command", "{url: 'http://a', method: BREW}", "with.method: must be one of GET"),
    ];
    for (executor, with, expect) in cases {
        let text = format!("resources:\n  - name: a\n    executor: {executor}\n    with: {with}\n");
        rejects(&text, expect);
        rejects(&text, "t.yaml:6: resources.a.with");
    }
    let action = "actions:\n  - name: a\n    certificate: {path: x, role: r}\n";
    rejects(action, "t.yaml:5: actions.a.certificate: missing field `common_name`");
    let action = "actions:\n  - name: a\n    certificate: {path: /, role: r, common_name: c}\n";
    rejects(action, "t.yaml:5: actions.a.certificate.path: must be a path");
}

#[test]
fn cycles_are_rejected() {
    let one = |name: &str, more: &str| format!("  - {{name: {name}, executor: command, {more}}}\n");
    let a = one("a", "depends_on: [b], with: {url: x}");
    let b = one("b", "depends_on: [c], with: {url: x}");
    let c = one("c", "with: {url: 'http://{{ a.host }}/'}");
    rejects(
        &format!("resources:\n{a}{b}{c}"),
        "t.yaml:4: resources.a.depends_on: dependency cycle: a → b → c → a",
    );
    let own = one("a", "depends_on: [g], with: {url: x}");
    rejects(
        &format!("resources:\n{own}groups: [{{name: g, resources: [a]}}]\n"),
        "dependency cycle: a → a",
    );
    let itself = one("a", "with: {url: '{{ a.url }}'}");
    rejects(
        &format!("resources:\n{itself}"),
        "resources.a.with.url: a can't reference its own outputs",
    );
    rejects(
        "groups:\n  - {name: g, resources: [h]}\n  - {name: h, resources: [g]}\n",
        "t.yaml:4: groups.g.resources: groups contain each other: g → h → g",
    );
    let implicit = format!(
        "resources:\n{}actions: [{{name: m, app: {{url: x}}}}]\n",
        one("a", "with: {url: '{{ m.x }}'}")
    );
    rejects(&implicit, "t.yaml:4: resources.a.with.url: dependency cycle: a → m → a");
}

/// This many minimal resources.
fn many(count: usize, prefix: &str, more: &str) -> String {
    (0..count).fold(String::new(), |all, i| {
        all + &format!("  - {{name: {prefix}{i}, executor: command, with: {{url: x}}{more}}}\n")
    })
}

#[test]
fn oversized_templates_are_rejected() {
    let resources = many(2001, "r", "");
    rejects(&format!("resources:\n{resources}"), "resources: has 2001 entries; at most 2000");
    let names: Vec<String> = (0..600).map(|i| format!("r{i}")).collect();
    let group = format!("groups: [{{name: g, resources: [{}]}}]\n", names.join(", "));
    let (first, second) = (many(600, "r", ""), many(400, "s", ", depends_on: [g]"));
    rejects(&format!("{group}resources:\n{first}{second}"), "more than 200000 dependencies");
    let long = format!("'{{{{ environment.id }}}}{}'", "x".repeat(1 << 20));
    let text = format!("resources: [{{name: a, executor: command, with: {{url: {long}}}}}]\n");
    rejects(&text, "at most 64 KiB");
}

/// Groups that would take gigabytes if expanded before being checked.
#[test]
fn group_bombs_are_rejected_or_harmless() {
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
    rejects(&format!("groups:\n{nested}resources:\n{resources}"), "more than 200000 dependencies");
}

#[test]
fn documents_of_wrong_shape_are_rejected() {
    rejects("name: t\nversion: '1'\nname: u\n", "t.yaml:3: duplicate mapping key: name");
    rejects("resources:\n  - {name: a, executor: command, with: {url: x, url: y}}\n", "duplicate");
    rejects("resources: [{name: a, name: b, executor: command}]\n", "duplicate mapping key: name");
    rejects("parameters: {a: {type: string}, a: {type: list}}\n", "duplicate mapping key: a");
    rejects("resources: [{name: a, executor: Terraform}]\n", "unknown variant `Terraform`");
    rejects("resources: [{name: a, executor: command, whit: {}}]\n", "unknown field `whit`");
    rejects("actions: [{name: a, when: always}]\n", "unknown field `when`");
    rejects("groups: [{name: a, members: []}]\n", "unknown field `members`");
    rejects("parameters: {a: {type: string, secret: true}}\n", "unknown field `secret`");
    rejects("resources: {a: {executor: command}}\n", "resources");
    rejects("resources: [{name: a, executor: command, with: [1]}]\n", "with");
    rejects("resources: [{name: a, executor: !!python/object:os.system command}]\n", "tag");
    rejects(
        "resources: [{name: a, executor: command, with: {url: x, '{{ y }}': z}}]\n",
        "in names",
    );
    for text in ["", "---\n", "[]\n", "just a text\n", "name: t\n", "\0", "{", "name: [\n"] {
        assert!(parse("t.yaml", text).is_err(), "{text:?}");
    }
}

#[test]
fn yaml_bombs_are_rejected() {
    let mut laughs = String::from("parameters:\n  a0: {type: list, default: &b0 [x, x, x]}\n");
    for i in 1..12 {
        let alias = vec![format!("*b{}", i - 1); 9].join(", ");
        laughs = format!("{laughs}  a{i}: {{type: list, default: &b{i} [{alias}]}}\n");
    }
    rejects(&laughs, "too large or too complex");
    // Few aliases of a long string.
    let text = format!("description: &a {}\n", "x".repeat(1 << 20));
    let aliases = vec!["*a"; 15_000].join(", ");
    let resource = format!("{{name: a, executor: command, with: {{url: x, body: [{aliases}]}}}}");
    rejects(&format!("{text}resources: [{resource}]\n"), "too large or too complex");
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let deep = format!("{}{}", open.repeat(500), close.repeat(500));
        let text = format!("resources: [{{name: a, executor: command, with: {{url: {deep}}}}}]\n");
        assert!(parse("t.yaml", &format!("name: t\nversion: '1'\n{text}")).is_err());
    }
    let itself = "resources: [{name: a, executor: command, with: &a {url: x, body: *a}}]\n";
    rejects(itself, "Recursive reference");
}
