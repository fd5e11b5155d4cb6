//! Evaluation and sandboxing of expressions.

use proptest::prelude::*;

use super::*;
use crate::template::expression::{self, Scope};

fn scope() -> Scope {
    let values = json!({
        "replicas": 3, "name": "shop", "ratio": 1.5, "on": true, "list": ["a", "b"],
        "bus": {"host": "bus.local", "port": 9092, "all": [{"host": "x"}, {"host": "y"}]},
    });
    map(values)
        .into_iter()
        .map(|(name, value)| (name, minijinja::Value::from_serialize(value)))
        .collect()
}

fn render(text: &str) -> Result<Value, String> {
    expression::names(text)?;
    expression::render(text, &scope())
}

#[test]
fn expressions_evaluate_to_values() {
    for (text, expect) in [
        ("plain", json!("plain")),
        ("{{ replicas }}", json!(3)),
        ("{{replicas}}", json!(3)),
        (" {{ replicas }}", json!(" 3")),
        ("{{ replicas + 1 }}", json!(4)),
        ("{{ replicas | times(2) }}", json!(6)),
        ("{{ ratio }}", json!(1.5)),
        ("{{ on }}", json!(true)),
        ("{{ not on }}", json!(false)),
        ("{{ list }}", json!(["a", "b"])),
        ("{{ list[0] }}{{ list | last }}", json!("ab")),
        ("{{ bus }}", scope_value("bus")),
        ("http://{{ bus.host }}:{{ bus.port }}/", json!("http://bus.local:9092/")),
        ("{{ bus.all | length }}", json!(2)),
        ("{{ bus.absent | default('x') }}", json!("x")),
        ("{{ 'yes' if on else 'no' }}", json!("yes")),
        ("{{ (1) if not (on) else (2) }}", json!(2)),
        ("{{ 'b' in (list) and (on or (not on)) }}", json!(true)),
        ("{{ name | upper }}-{{ name | replace('s', 't') }}", json!("SHOP-thop")),
        ("{{ list | join(', ') }}", json!("a, b")),
        ("{{ {'a': {'b': replicas}} }}", json!({"a": {"b": 3}})),
        ("{{ '}}' }}{{ \"{%\" }}", json!("}}{%")),
        ("{{ '7' | int + 1 }}", json!(8)),
        ("{{ list | tojson }}", json!("[\"a\",\"b\"]")),
        ("{{ (replicas - 1) // 2 }}", json!(1)),
        ("{{ bus.absent is defined }}", json!(false)),
        ("x {{ list }}", json!("x [\"a\",\"b\"]")),
    ] {
        assert_eq!(render(text), Ok(expect), "{text}");
    }
}

fn scope_value(name: &str) -> Value {
    serde_json::to_value(&scope()[name]).unwrap()
}

#[test]
fn hostile_expressions_are_rejected() {
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(100), ")".repeat(100));
    let minus = format!("{{{{ {}1 }}}}", "-".repeat(1500));
    let sum = format!("{{{{ {}1 }}}}", "1+".repeat(1000));
    let long = format!("{{{{ '{}' }}}}", "x".repeat(3000));
    let many = "{{ name }}".repeat(300);
    let huge = format!("{{{{ name }}}}{}", "x".repeat(70_000));
    for (text, expect) in [
        ("{{ 'x' * 1000000000 }}", "* and ** are not allowed"),
        ("{{ 2 ** 100000 }}", "* and ** are not allowed"),
        ("{{ [1] * 10 }}", "* and ** are not allowed"),
        ("{{ 'x' | times(1000000000) }}", "only numbers can be multiplied"),
        ("{{ 9223372036854775807 | times(2) }}", "too large"),
        ("{{ range(1000000000) }}", "can't be called"),
        ("{{ name.upper() }}", "can't be called"),
        ("{{ ''.__class__() }}", "can't be called"),
        ("{{ ('a')('b') }}", "can't be called"),
        ("{{ list[0]('b') }}", "can't be called"),
        ("{{ debug() }}", "can't be called"),
        ("{{ super() }}", "can't be called"),
        ("{{ loop(list) }}", "can't be called"),
        ("{{ true('x') }}", "can't be called"),
        ("{{ self.x() }}", "can't be called"),
        ("{{ ''[::-1] }}", "slices ([1:2]) are not allowed"),
        ("{{ list[1:] }}", "slices ([1:2]) are not allowed"),
        ("{{ [list[0:1:-1]] }}", "slices ([1:2]) are not allowed"),
        ("{{ {'a': list[:1]} }}", "slices ([1:2]) are not allowed"),
        ("{{ ''.__class__ }}", "has no value"),
        ("{{ name.__init__.__globals__ }}", "undefined"),
        ("{{ ''['__class__']['__mro__'] }}", "undefined"),
        ("{{ env }}{{ config.items }}", "has no value"),
        ("{{ name | center(1000000) }}", "unknown filter center; expected one of default"),
        ("{{ name | attr('x') }}", "unknown filter attr"),
        ("{{ name is divisibleby(2) }}", "unknown test divisibleby"),
        ("{{ name is not sameas(2) }}", "unknown test sameas"),
        ("{{ name | replace('', name) | replace('', name)", "unclosed {{"),
        ("{% for x in range(9) %}{% endfor %}", "statements ({%) are not allowed"),
        ("{% include '/etc/passwd' %}", "statements ({%) are not allowed"),
        ("{% import 'a' as a %}", "statements ({%) are not allowed"),
        ("{% extends 'a' %}", "statements ({%) are not allowed"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "statements ({%) are not allowed"),
        ("{% set x = 1 %}", "statements ({%) are not allowed"),
        ("{% debug %}", "statements ({%) are not allowed"),
        ("{{ [x for x in list] }}", "syntax error"),
        ("{# x #}", "comments ({#) are not allowed"),
        ("{{- name -}}", "whitespace control"),
        ("{{ }}", "the expression is empty"),
        ("{{ name", "unclosed {{"),
        ("{{ 'name }}", "unclosed {{"),
        ("{{ name name }}", "syntax error"),
        ("{{ name.x.y }}", "undefined"),
        ("{{ name.x }}", "has no value"),
        ("{{ nobody }}", "has no value"),
        ("{{ nobody }} x", "has no value"),
        ("{{ 1 / 0 }}", ""),
        ("{{ 1 // 0 }}", ""),
        ("{{ 1 % 0 }}", ""),
        ("{{ 1e999 }}", ""),
        ("{{ 99999999999999999999999999999999999999999999 }}", ""),
        (&deep, "nested deeper than 16 levels"),
        (&minus, "at most 256 tokens"),
        (&sum, "at most 256 tokens"),
        (&long, "at most 2048 characters"),
        (&many, "at most 256 expressions"),
        (&huge, "at most 64 KiB"),
    ] {
        let error = render(text).expect_err(text);
        assert!(error.contains(expect), "{text}\nexpected: {expect}\nfound:    {error}");
    }
}

#[test]
fn size_of_results_is_limited() {
    let kib: Scope = [("a".to_owned(), minijinja::Value::from("a".repeat(1024)))].into();
    for text in [
        format!("{{{{ a{} }}}}", " | replace('a', 'aaaaaaaa')".repeat(30)),
        format!("{{{{ a{} }}}}", " ~ a".repeat(100)),
        format!("{{{{ a{} | upper }}}}", " ~ a".repeat(100)),
        format!("{{{{ [a{}] | join('x') }}}}", ", a".repeat(100)),
        format!("{{{{ [a{}] }}}}", ", a".repeat(100)),
        "{{ a }}".repeat(100),
        "{{ [a] | join(a) | replace('', a) }}".to_owned(),
    ] {
        expression::names(&text).unwrap();
        let error = expression::render(&text, &kib).expect_err(&text);
        assert!(error.contains("64 KiB"), "{error}");
    }
}

#[test]
fn jinja_globals_are_unknown() {
    for name in ["range", "dict", "debug", "namespace", "lipsum", "cycler", "joiner", "self"] {
        let text = format!("{{{{ {name} }}}}");
        let resource = format!("  - {{name: a, executor: command, with: {{url: '{text}'}}}}\n");
        let text = format!("name: t\nversion: '1'\nresources:\n{resource}");
        let error = parse("t.yaml", &text).unwrap_err().to_string();
        assert!(error.contains(&format!("unknown parameter or resource {name}")), "{error}");
    }
}

proptest! {
    #[test]
    fn no_input_panics(text in "([{}%#|(){}\\[\\]'\"a-z0-9 .,+*/~<>=!:\\\\é-]|\\{\\{ | \\}\\}| is | not | if | else |name|list|\\|join|\\|int|\\|length){0,40}") {
        let _ = expression::names(&text);
        let _ = expression::render(&text, &scope());
        let wrapped = format!("{{{{ {text} }}}}");
        if expression::names(&wrapped).is_ok() {
            let _ = expression::render(&wrapped, &scope());
        }
    }

    /// Paths are looked up without compilation, with the result of the compiler.
    #[test]
    fn path_lookup_equals_compiled_expression(
        path in "(name|list|bus|on|nobody|environment)(\\.(host|all|port|x|id|if|0)){0,3}",
    ) {
        let (short, long) = (format!("{{{{ {path} }}}}"), format!("{{{{ ({path}) }}}}"));
        prop_assert_eq!(expression::names(&short).ok(), expression::names(&long).ok());
        let render = |text: &str| {
            expression::render(text, &scope())
                .map_err(|error| error.split("}}").last().unwrap_or_default().to_owned())
        };
        prop_assert_eq!(render(&short), render(&long));
    }

    #[test]
    fn plain_text_is_unchanged(text in "[^{]{0,40}") {
        prop_assert_eq!(expression::render(&text, &Scope::new()), Ok(Value::String(text)));
    }
}
