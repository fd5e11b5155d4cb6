//! Invalid input to every endpoint: a 4xx that names the field and the rule, and no change.

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::bad_values::{Rule, bad, bad_query};
use crate::calls::{self, Call};
use crate::world::{World, details, names_field, refused};

const JSON: &str = "application/json";

on_both_engines! {
    async fn non_object_body_is_rejected(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        let broken = ["{", "}", "{\"a\":", "nonsense", "{} {}", "[]", "\"text\"", "5", "\u{feff}{}"];
        for call in calls::all(&world.ours).iter().filter(|call| call.body.is_some()) {
            for text in broken {
                let answer = send(world.caller(call), call, JSON, text).await;
                refused(&answer, &format!("{} {text}", call.name()));
                assert_eq!(answer.status, 400, "{} {text}: {:#}", call.name(), answer.json);
            }
            let deep = "[".repeat(10_000);
            refused(&send(world.caller(call), call, JSON, &deep).await, &call.name());
            if call.operation["requestBody"]["required"] == json!(true) {
                let answer = send(world.caller(call), call, JSON, "").await;
                refused(&answer, &call.name());
                assert!(details(&answer).contains("empty"), "{}: {:#}", call.name(), answer.json);
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn unsupported_content_type_is_rejected(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        for call in calls::all(&world.ours) {
            let Some(body) = &call.body else { continue };
            for kind in ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""] {
                // Templates are plain text.
                if call.operation["requestBody"]["content"].get(kind).is_some() {
                    continue;
                }
                let answer = send(world.caller(&call), &call, kind, &body.to_string()).await;
                refused(&answer, &call.name());
                assert_eq!(answer.status, 415, "{} {kind}", call.name());
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn invalid_field_is_named_and_rejected(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        for call in calls::all(&world.ours) {
            for &(field, rule) in &call.fields {
                for value in bad(rule) {
                    let body = with(call.body.as_ref().unwrap(), field, value).to_string();
                    let answer = send(world.caller(&call), &call, JSON, &body).await;
                    let short: String = body.chars().take(200).collect();
                    // `image` and `docker_path` are aliases.
                    let named = if field == "docker_path" { "" } else { field };
                    names_field(&answer, named, &format!("{} {short}", call.name()));
                }
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn invalid_json_numbers_are_rejected(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        for call in calls::all(&world.ours) {
            let amounts = ["resource", "resources", "capacity"];
            let is_amount = |(field, rule): &&(&str, Rule)| {
                amounts.contains(field) && !matches!(rule, Rule::Words)
            };
            let Some((field, _)) = call.fields.iter().find(is_amount) else { continue };
            for number in ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "0x10", "1.", ".5", "+1"] {
                let body = with(call.body.as_ref().unwrap(), field, json!({"cpu": "HERE"}));
                let body = body.to_string().replace("\"HERE\"", number);
                let answer = send(world.caller(&call), &call, JSON, &body).await;
                refused(&answer, &format!("{} {body}", call.name()));
                assert_eq!(answer.status, 400, "{} {body}", call.name());
                let said = details(&answer);
                assert!(said.contains(&format!(" at {field}")), "{} {body}: {said}", call.name());
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn missing_field_is_named_and_rejected(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        for call in calls::all(&world.ours) {
            for field in required(&call) {
                let mut body = call.body.clone().unwrap();
                body.as_object_mut().unwrap().remove(&field);
                let answer = send(world.caller(&call), &call, JSON, &body.to_string()).await;
                names_field(&answer, &field, &call.name());
                let body = with(call.body.as_ref().unwrap(), &field, Value::Null);
                let answer = send(world.caller(&call), &call, JSON, &body.to_string()).await;
                names_field(&answer, &field, &format!("{} null", call.name()));
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn unknown_field_is_rejected_by_the_platform_api_and_ignored_by_kargo(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        for call in calls::all(&world.ours) {
            let Some(body) = &call.body else { continue };
            if call.is_platform() {
                let body = with(body, "surprise", json!(1)).to_string();
                names_field(&send(world.caller(&call), &call, JSON, &body).await, "surprise", &call.name());
            } else if let Some(&(field, rule)) = call.fields.first() {
                let body = with(body, field, bad(rule)[0].clone());
                let body = with(&body, "surprise", json!(1)).to_string();
                let answer = send(world.caller(&call), &call, JSON, &body).await;
                names_field(&answer, field, &call.name());
                assert!(!details(&answer).contains("surprise"), "{}", call.name());
            }
        }
        assert_eq!(world.snapshot().await, before);
        let body = json!({"cluster_name": "x", "resource": {"cpu": 1}, "surprise": {"deep": [1]}});
        world.ann.put("/cluster/", body).await.expect(201);
    }

    async fn invalid_query_parameter_is_named_and_rejected(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        for call in calls::all(&world.ours) {
            let parameters = call.operation["parameters"].as_array().cloned().unwrap_or_default();
            for parameter in parameters.iter().filter(|p| p["in"] == "query") {
                let name = parameter["name"].as_str().unwrap();
                let values = bad_query(&call.path, name).iter().copied();
                for value in values.chain(["a%00b", "%1b"]) {
                    let path = format!("{}?{name}={value}", call.path);
                    let client = world.caller(&call);
                    names_field(&client.send(call.request(client, &path)).await, name, &path);
                }
            }
        }
        assert_eq!(world.snapshot().await, before);
    }
}

async fn send(client: &Client, call: &Call, kind: &str, body: &str) -> testing::Answer {
    let request = client.request(&call.method, &call.path).body(body.to_owned());
    let request = if kind.is_empty() { request } else { request.header(CONTENT_TYPE, kind) };
    client.send(request).await
}

/// Replaces the value at a path of the body.
fn with(body: &Value, path: &str, value: Value) -> Value {
    let mut changed = body.clone();
    let mut at = &mut changed;
    for part in path.split('.') {
        at = &mut at[part];
    }
    *at = value;
    changed
}

/// Fields that the OpenAPI document requires.
fn required(call: &Call) -> Vec<String> {
    let schema = &call.operation["requestBody"]["content"][JSON]["schema"];
    let Some(name) = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next()) else {
        return Vec::new();
    };
    let documents = api::documents().map(|(_, document)| serde_json::to_value(document).unwrap());
    let found = documents.iter().find_map(|d| d["components"]["schemas"].get(name).cloned());
    let required = found.expect("a schema of that name")["required"].clone();
    serde_json::from_value(required).unwrap_or_default()
}
