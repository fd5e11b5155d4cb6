//! The golden OpenAPI documents, and checks of their completeness.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

#[test]
fn golden_documents_match_the_code() {
    for (name, document) in api::documents() {
        let now = serde_json::to_string_pretty(&document).unwrap() + "\n";
        let path = path(name);
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &now).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = golden.lines().zip(now.lines()).find(|(golden, now)| golden != now);
        assert!(
            golden == now,
            "openapi/{name}.json is not what the code says, first at {differs:?}. If the change is \
             meant, renew it: UPDATE_OPENAPI=1 cargo nextest run -p paddock-api golden"
        );
    }
}

#[test]
fn every_operation_has_a_summary_a_tag_and_a_unique_id() {
    for (name, document) in documents() {
        let mut ids = BTreeSet::new();
        for (call, operation) in operations(&document) {
            for field in ["summary", "operationId"] {
                let text = operation[field].as_str().unwrap_or_default();
                assert!(text.len() > 4, "{name}: {call} has no {field}");
            }
            assert_eq!(operation["tags"].as_array().map_or(0, Vec::len), 1, "{name}: {call}");
            let id = operation["operationId"].to_string();
            assert!(ids.insert(id), "{name}: {call}'s operationId is not unique");
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("default"), "{name}: {call} has no default response");
            assert!(responses.keys().any(|status| status.starts_with('2')), "{name}: {call}");
        }
    }
}

#[test]
fn every_property_and_parameter_is_described() {
    let mut bare = Vec::new();
    for (name, document) in documents() {
        for (schema_name, schema) in document["components"]["schemas"].as_object().unwrap() {
            if !is_described(schema) && !schema_name.starts_with("BTreeMap") {
                bare.push(format!("{name}: {schema_name}"));
            }
            for (property, shape) in schema["properties"].as_object().into_iter().flatten() {
                if !is_described(shape) {
                    bare.push(format!("{name}: {schema_name}.{property}"));
                }
            }
        }
        for (call, operation) in operations(&document) {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                if !is_described(parameter) {
                    bare.push(format!("{name}: {call} {}", parameter["name"]));
                }
            }
        }
    }
    assert!(bare.is_empty(), "not described: {bare:#?}");
}

#[test]
fn every_reference_resolves() {
    for (name, document) in documents() {
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{name}: {pointer}");
        }
    }
}

fn is_described(shape: &Value) -> bool {
    // Nullable properties are described in their non-null variant.
    let parts = shape["oneOf"].as_array().into_iter().flatten();
    parts.chain([shape]).any(|part| part["description"].as_str().is_some_and(|text| text.len() > 3))
}

fn documents() -> Vec<(&'static str, Value)> {
    let all = api::documents().into_iter();
    all.map(|(name, document)| (name, serde_json::to_value(document).unwrap())).collect()
}

fn operations(document: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((format!("{method} {path}"), operation.clone()));
        }
    }
    all
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../openapi/{name}.json"))
}
