//! Checks responses against the OpenAPI documents.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

/// Panics if a response does not match the documents.
pub(crate) fn check(method: &str, path: &str, status: u16, content_type: &str, body: &[u8]) {
    let Some((document, operation)) = find(method, path) else {
        assert!(status >= 400, "{method} {path} returned {status} but is in no OpenAPI document");
        return;
    };
    let responses = &operation["responses"];
    let exact = &responses[status.to_string()];
    let response = if exact.is_null() { &responses["default"] } else { exact };
    assert!(
        !exact.is_null() || status >= 400,
        "{method} {path} returned undocumented status {status}"
    );
    let Some(content) = response["content"].as_object() else {
        assert!(body.is_empty(), "{method} {path} {status} has an undocumented body");
        return;
    };
    let kind = content_type.split(';').next().unwrap_or_default();
    let media = content.get(kind).unwrap_or_else(|| {
        panic!(
            "{method} {path} {status} returned {content_type:?}, documented is {:?}",
            content.keys()
        )
    });
    if kind.ends_with("json") {
        let body = serde_json::from_slice(body).expect("a JSON response is valid JSON");
        validate(document, &media["schema"], &body, &format!("{method} {path} {status}"));
    }
}

fn validate(document: &Value, schema: &Value, body: &Value, call: &str) {
    let validator = validator(document, schema);
    let errors: Vec<String> =
        validator.iter_errors(body).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{call} does not match its schema: {errors:#?}\n{body:#}");
}

/// The validator of a schema; cached, since compiling takes longer than most requests.
fn validator(document: &Value, schema: &Value) -> Arc<Validator> {
    static CACHE: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{} {schema}", document["info"]["title"]);
    let compile = || {
        let mut schema = schema.clone();
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).expect("documents hold valid schemas");
        Arc::new(validator)
    };
    cache.entry(key).or_insert_with(compile).clone()
}

/// Finds the document and the operation of a request.
fn find(method: &str, path: &str) -> Option<(&'static Value, &'static Value)> {
    documents().iter().find_map(|document| {
        let paths = document["paths"].as_object()?;
        let (_, item) = paths.iter().find(|(template, _)| matches(template, path))?;
        let operation = &item[method.to_lowercase()];
        (!operation.is_null()).then_some((document, operation))
    })
}

fn matches(template: &str, path: &str) -> bool {
    let parts =
        |text: &str| text.trim_matches('/').split('/').map(str::to_owned).collect::<Vec<_>>();
    let (template, path) = (parts(template), parts(path));
    template.len() == path.len()
        && template.iter().zip(&path).all(|(t, p)| t == p || t.starts_with('{'))
        // `/invites/check` is not `/invites/{id}`: the literal segment wins.
        && !(template.last().is_some_and(|t| t.starts_with('{'))
            && ["check", "redeem", "plan"].contains(&path.last().map_or("", String::as_str)))
}

fn documents() -> &'static [Value] {
    static DOCUMENTS: OnceLock<Vec<Value>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let documents = api::documents().into_iter().map(|(_, document)| {
            let mut document = serde_json::to_value(document).expect("documents are plain data");
            close(&mut document["components"]["schemas"]);
            document
        });
        documents.collect()
    })
}

/// Forbids fields that a document does not name.
fn close(schemas: &mut Value) {
    for schema in schemas.as_object_mut().expect("schemas by name").values_mut() {
        if schema["properties"].is_object() && schema["additionalProperties"].is_null() {
            schema["additionalProperties"] = json!(false);
        }
    }
}
