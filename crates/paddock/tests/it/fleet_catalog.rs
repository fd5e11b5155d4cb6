//! Rule files that change while the server runs: kinds, quota and denied owners.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::fleet::{Fleet, KAFKAS};
use super::process::Setup;

const API: &str = "/api/postgreses_mgmt/v1";
const POSTGRESES: &str = "/api/postgreses_mgmt/v1/postgreses";

/// The example in CONTRIBUTING.md.
fn example() -> String {
    let text = include_str!("../../../../CONTRIBUTING.md");
    let (_, rest) = text.split_once("```yaml\n").expect("CONTRIBUTING.md has an example");
    let (example, _) = rest.split_once("```").expect("the example ends");
    let lines = example.lines().map(|line| line.strip_prefix("   ").unwrap_or(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A server with a rule file, and the file.
async fn with_file(setting: &str, name: &str, text: &str) -> (Fleet, PathBuf) {
    let setup = Setup::new();
    let file = setup.file(name);
    fs::write(&file, text).unwrap();
    let setup = setup.arg(setting, file.to_str().unwrap());
    (Fleet::start(setup).await, file)
}

/// Waits until the server has logged an error at this line.
async fn until_rejected(fleet: &Fleet, place: &str) {
    fleet
        .poll(&format!("rejected: {place}"), async || {
            let log = fleet.server.stderr();
            let is_logged = log
                .lines()
                .any(|line| line.contains("keeping the previous rules") && line.contains(place));
            if is_logged { Ok(()) } else { Err(Value::Null) }
        })
        .await;
}

async fn until_response(fleet: &Fleet, path: &str, status: u16) {
    fleet
        .poll(&format!("{path} is {status}"), async || match response_status(fleet, path).await {
            now if now == status => Ok(()),
            other => Err(other.into()),
        })
        .await;
}

/// Status of an unchecked response: without the kind, no OpenAPI document describes the path.
async fn response_status(fleet: &Fleet, path: &str) -> u16 {
    fleet.ann.request("GET", path).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn kind_file_is_loaded_and_reloaded_while_running() {
    let setup = Setup::new();
    let dir = setup.file("catalog");
    fs::create_dir(&dir).unwrap();
    let fleet = Fleet::start(setup.arg("--catalog-dir", dir.to_str().unwrap())).await;
    assert_eq!(response_status(&fleet, POSTGRESES).await, 404);

    let (file, text) = (dir.join("postgres.yaml"), example());
    fs::write(&file, &text).unwrap();
    until_response(&fleet, POSTGRESES, 200).await;
    let list = fleet.ann.get(POSTGRESES).await.expect(200);
    assert_eq!((&list["kind"], &list["total"]), (&json!("PostgresRequestList"), &json!(0)));
    let kinds = fleet.ann.get("/api/v1/kinds").await.expect(200);
    let names: Vec<_> =
        kinds["items"].as_array().unwrap().iter().map(|kind| &kind["name"]).collect();
    assert!(names.contains(&&json!("postgres")) && names.contains(&&json!("kafka")), "{names:?}");
    let errors = fleet.ann.get(&format!("{API}/errors/7")).await.expect(200);
    assert_eq!(errors["code"], "POSTGRESES-MGMT-7");

    // An instance shows the sizes from the file.
    let body = json!({"name": "books", "plan": "standard.small"});
    let id = fleet.ann.post(&format!("{POSTGRESES}?async=true"), body).await.text("id");
    fleet.until_ready(&id).await;
    let shown = fleet.ann.get(&format!("{POSTGRESES}/{id}")).await.expect(200);
    assert_eq!((&shown["kind"], &shown["version"]), (&json!("Postgres"), &json!("17")));
    assert_eq!(shown["max_connections"], 50);
    assert_eq!(shown["max_size"], json!({"bytes": 10_u64 << 30}));

    // An invalid file is reported with its line, and the kind stays unchanged.
    fs::write(&file, text.replace("display_name: PostgreSQL", "displayname: PostgreSQL")).unwrap();
    let line = 1 + text.lines().position(|line| line == "display_name: PostgreSQL").unwrap();
    until_rejected(&fleet, &format!("postgres.yaml:{line}")).await;
    fleet.ann.get(&format!("{POSTGRESES}/{id}")).await.expect(200);
    let other = fleet.create(POSTGRESES, "films").await;
    fleet.until_ready(&other).await;

    // A valid change is applied.
    fs::write(&file, text.replace("max_connections: 50", "max_connections: 60")).unwrap();
    fleet
        .poll("the new limit", async || {
            let now = fleet.ann.get(&format!("{POSTGRESES}/{id}")).await.expect(200);
            if now["max_connections"] == 60 { Ok(()) } else { Err(now) }
        })
        .await;
    for id in [&id, &other] {
        fleet.delete(POSTGRESES, id).await;
        fleet.until_deleted(id).await;
    }
    fs::remove_file(&file).unwrap();
    until_response(&fleet, POSTGRESES, 404).await;
    fleet.ann.get(KAFKAS).await.expect(200);
    fleet.assert_nothing_held().await;
}

/// Quota limit of the standard type of Kafka.
async fn standard_limit(fleet: &Fleet) -> Value {
    let quota = fleet.ann.get("/api/v1/quota").await.expect(200);
    assert_eq!(quota["is_limited"], true);
    let is_standard =
        |item: &&Value| item["kind"] == "kafka" && item["instance_type"] == "standard";
    let items = quota["items"].as_array().unwrap();
    items.iter().find(is_standard).map_or(Value::Null, |item| item["limit"].clone())
}

#[tokio::test]
async fn quota_file_is_reloaded_unless_invalid() {
    let list = |limit: u32| {
        format!(
            "registered_service_accounts:\n  - username: ann\n    max_allowed_instances: {limit}\n"
        )
    };
    let (fleet, file) = with_file("--quota-file", "quota.yaml", &list(1)).await;
    assert_eq!(standard_limit(&fleet).await, 1);
    let one = fleet.create(KAFKAS, "one").await;
    let body = json!({"name": "two"});
    let refused = fleet.ann.post(&format!("{KAFKAS}?async=true"), body).await.expect(403);
    assert_eq!(refused["code"], "KAFKAS-MGMT-5", "{refused:#}");

    fs::write(&file, list(2).replace("max_allowed", "most")).unwrap();
    until_rejected(&fleet, "quota.yaml:3").await;
    assert_eq!(standard_limit(&fleet).await, 1, "the previous rules stay in force");

    fs::write(&file, list(2)).unwrap();
    fleet
        .poll("the new limit", async || match standard_limit(&fleet).await {
            limit if limit == 2 => Ok(()),
            other => Err(other),
        })
        .await;
    let two = fleet.create(KAFKAS, "two").await;
    for id in [&one, &two] {
        fleet.until_ready(id).await;
        fleet.delete(KAFKAS, id).await;
        fleet.until_deleted(id).await;
    }
    fleet.assert_nothing_held().await;
}

#[tokio::test]
async fn denied_owners_file_is_applied_while_running() {
    let (fleet, file) = with_file("--denied-owners-file", "denied.yaml", "# nobody\n").await;
    let id = fleet.create(KAFKAS, "one").await;
    fleet.until_ready(&id).await;

    fs::write(&file, "- ben\n- {ann: yes}\n").unwrap();
    until_rejected(&fleet, "denied.yaml:2").await;
    fleet.until_ready(&id).await;

    fs::write(&file, "- ben\n- ann\n").unwrap();
    fleet.until_deleted(&id).await;
    let refused = fleet.ann.post(&format!("{KAFKAS}?async=true"), json!({"name": "two"})).await;
    let refused = refused.expect(403);
    assert_eq!(refused["code"], "KAFKAS-MGMT-4", "{refused:#}");

    fs::write(&file, "- ben\n").unwrap();
    until_response(&fleet, KAFKAS, 200).await;
    let id = fleet.create(KAFKAS, "two").await;
    fleet.until_ready(&id).await;
    fleet.delete(KAFKAS, &id).await;
    fleet.until_deleted(&id).await;
    fleet.assert_nothing_held().await;
}
