//! Expressions of templates: evaluated with bounded time and size, and always to the same text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::template::{Context, fill_text};
use serde_json::{Map, Value, json};

/// The maximum length of a result, as in the module that evaluates expressions.
const MAX_TEXT: usize = 1 << 20;

fuzz_target!(|text: &str| {
    let context = context();
    let filled = fill_text(text, None, &context);
    assert_eq!(filled, fill_text(text, None, &context), "evaluation is deterministic");
    match filled {
        Ok(filled) if !text.contains("{{") => assert_eq!(filled, text),
        Ok(filled) => assert!(filled.len() <= MAX_TEXT, "{} bytes", filled.len()),
        Err(_) => {}
    }
});

fn context() -> Context {
    let map = |value: Value| match value {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let parameters = json!({
        "n": 3, "word": "abc", "yes": true, "ratio": 0.5, "none": null,
        "list": ["a", 1, {"b": 2}], "map": {"key": "value", "long": "x".repeat(100)},
    });
    let outputs = [
        ("db", json!({"url": "postgres://db", "port": 5432})),
        ("web-0", json!({"endpoint": "http://localhost:1"})),
        ("web-1", json!({"endpoint": "http://localhost:2"})),
    ];
    Context {
        environment_id: "environment".into(),
        environment_name: "test".into(),
        organization_id: "organization".into(),
        parameters: map(parameters),
        outputs: outputs.map(|(name, value)| (name.to_owned(), map(value))).into(),
    }
}
