//! Helpers for tests of the fleet API.

use model::InstanceId;
use model::event::Actor;
use model::instance::{Reason, Status};
use model::reason::StatusReason;
use serde_json::{Value, json};
use store::{Scope, instance};
use testing::{Answer, Client, Engine, TestPaddock, TestSettings};

pub(crate) const API: &str = "/api/kafkas_mgmt/v1";
pub(crate) const KAFKAS: &str = "/api/kafkas_mgmt/v1/kafkas";
pub(crate) const DINOSAURS: &str = "/api/dinosaurs_mgmt/v1/dinosaurs";

/// Starts a server without workers.
pub(crate) async fn start_fleet(engine: Engine) -> TestPaddock {
    TestPaddock::start_with(engine, TestSettings { api_only: true, ..TestSettings::default() })
        .await
}

/// Requests a kafka; `more` is merged into the body.
pub(crate) async fn request_kafka(client: &Client, name: &str, more: Value) -> Answer {
    let mut body = json!({"name": name});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post(&format!("{KAFKAS}?async=true"), body).await
}

/// Creates a kafka with this name.
pub(crate) async fn kafka(client: &Client, name: &str) -> String {
    let answer = request_kafka(client, name, json!({})).await;
    assert_eq!(answer.status, 202, "{:#}", answer.json);
    answer.text("id")
}

/// Grants quota for kafkas, which enables quota enforcement.
pub(crate) async fn grant(paddock: &TestPaddock, of: Value) {
    let admin = paddock.admin().await;
    let mut body = json!({"kind": "kafka", "instance_type": "standard"});
    body.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
    admin.post("/api/v1/admin/quota", body).await.expect(201);
}

/// ID of the caller's organization.
pub(crate) async fn organization(client: &Client) -> String {
    client.get("/organization/").await.text("id")
}

/// Fails unless the response is this error in the fleet API's format.
#[track_caller]
pub(crate) fn fails(answer: &Answer, code: u16, status: u16) {
    let (json, call) = (&answer.json, &answer.call);
    assert_eq!(
        (json["id"].as_str(), answer.status),
        (Some(&*code.to_string()), status),
        "{call}: {json:#}"
    );
    let (api, prefix) = if call.contains("dinosaurs_mgmt") {
        ("dinosaurs_mgmt", "DINOSAURS-MGMT")
    } else {
        ("kafkas_mgmt", "KAFKAS-MGMT")
    };
    assert_eq!(json["kind"], "Error", "{call}");
    assert_eq!(json["href"], format!("/api/{api}/v1/errors/{code}"), "{call}");
    assert_eq!(json["code"], format!("{prefix}-{code}"), "{call}");
    assert!(
        json["reason"].as_str().is_some_and(|text| text.len() > 10 && text.ends_with('.')),
        "{json:#}"
    );
    assert_eq!(answer.headers["content-type"], "application/json", "{call}");
    if code == 15 {
        assert!(json.get("operation_id").is_none(), "{json:#}");
        assert!(!answer.headers.contains_key("x-operation-id"), "{call}");
        let realm = format!("Bearer realm=\"{prefix}/v1\"");
        assert_eq!(answer.headers["www-authenticate"], realm.as_str(), "{call}");
    } else {
        let id = answer.headers["x-operation-id"].to_str().unwrap();
        assert_eq!((json["operation_id"].as_str(), id.len()), (Some(id), 20), "{call}");
    }
}

/// Moves an instance through these statuses without a worker.
pub(crate) async fn transition(paddock: &TestPaddock, id: &str, path: &[Status]) {
    let id: InstanceId = id.parse().unwrap();
    for to in path {
        let mut tx = paddock.db().begin(Actor::Server).await.unwrap();
        let mut now = instance::lock(&mut tx, Scope::All, id).await.unwrap();
        instance::transition(&mut tx, &mut now, *to, Reason::reported("A test says so."))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
}

/// Charged units by kind, holder and account.
pub(crate) async fn charged(paddock: &TestPaddock) -> Vec<(String, i64)> {
    let all = store::quota_usage::list(&mut paddock.db().read().await.unwrap()).await.unwrap();
    let mut all: Vec<(String, i64)> = all
        .into_iter()
        .map(|(kind, c)| (format!("{kind} {} {}", c.holder, c.account), c.units))
        .collect();
    all.sort();
    all
}

/// Fails if the value contains a null.
#[track_caller]
pub(crate) fn has_no_null(value: &Value) {
    match value {
        Value::Null => panic!("a null"),
        Value::Array(items) => items.iter().for_each(has_no_null),
        Value::Object(fields) => fields.values().for_each(has_no_null),
        _ => {}
    }
}
