//! Rules in files: a third kind, quota, and denied owners, all while the server runs.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::fleet::{Fleet, KAFKAS};
use super::process::Setup;

const API: &str = "/api/postgreses_mgmt/v1";
const POSTGRESES: &str = "/api/postgreses_mgmt/v1/postgreses";

/// The example in CONTRIBUTING.md, as somebody copies it out of there.
fn example() -> String {
    let text = include_str!("../../../../CONTRIBUTING.md");
    let (_, rest) = text.split_once("```yaml\n").expect("there is an example");
    let (example, _) = rest.split_once("```").expect("it ends");
    let lines = example.lines().map(|line| line.strip_prefix("   ").unwrap_or(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A server with a file of rules at this setting, and the file.
async fn with_file(setting: &str, name: &str, text: &str) -> (Fleet, PathBuf) {
    let setup = Setup::new();
    let file = setup.file(name);
    fs::write(&file, text).unwrap();
    let setup = setup.arg(setting, file.to_str().unwrap());
    (Fleet::start(setup).await, file)
}

/// Waits until the server has said that it refuses this line of this file.
async fn refuses(fleet: &Fleet, place: &str) {
    fleet
        .look(&format!("refused: {place}"), async || {
            let said = fleet.server.stderr();
            let is_said = said
                .lines()
                .any(|line| line.contains("what was in force stays") && line.contains(place));
            if is_said { Ok(()) } else { Err(Value::Null) }
        })
        .await;
}

async fn until_answered(fleet: &Fleet, path: &str, status: u16) {
    fleet
        .look(&format!("{path} is {status}"), async || match answered(fleet, path).await {
            now if now == status => Ok(()),
            other => Err(other.into()),
        })
        .await;
}

/// The status of the answer. Whose API a path is in the documents can't tell while its kind is not there.
async fn answered(fleet: &Fleet, path: &str) -> u16 {
    fleet.ann.request("GET", path).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_example_is_a_kind_as_soon_as_its_file_is_there() {
    let setup = Setup::new();
    let dir = setup.file("catalog");
    fs::create_dir(&dir).unwrap();
    let fleet = Fleet::start(setup.arg("--catalog-dir", dir.to_str().unwrap())).await;
    assert_eq!(answered(&fleet, POSTGRESES).await, 404);

    let (file, text) = (dir.join("postgres.yaml"), example());
    fs::write(&file, &text).unwrap();
    until_answered(&fleet, POSTGRESES, 200).await;
    let list = fleet.ann.get(POSTGRESES).await.expect(200);
    assert_eq!((&list["kind"], &list["total"]), (&json!("PostgresRequestList"), &json!(0)));
    let kinds = fleet.ann.get("/api/v1/kinds").await.expect(200);
    let names: Vec<_> =
        kinds["items"].as_array().unwrap().iter().map(|kind| &kind["name"]).collect();
    assert!(names.contains(&&json!("postgres")) && names.contains(&&json!("kafka")), "{names:?}");
    let errors = fleet.ann.get(&format!("{API}/errors/7")).await.expect(200);
    assert_eq!(errors["code"], "POSTGRESES-MGMT-7");

    // One is made, and shows what the file says of its size.
    let body = json!({"name": "books", "plan": "standard.small"});
    let id = fleet.ann.post(&format!("{POSTGRESES}?async=true"), body).await.text("id");
    fleet.until_ready(&id).await;
    let shown = fleet.ann.get(&format!("{POSTGRESES}/{id}")).await.expect(200);
    assert_eq!((&shown["kind"], &shown["version"]), (&json!("Postgres"), &json!("17")));
    assert_eq!(shown["max_connections"], 50);
    assert_eq!(shown["max_size"], json!({"bytes": 10_u64 << 30}));

    // A slip of the pen: it is said where, and the kind stays as it was.
    fs::write(&file, text.replace("display_name: PostgreSQL", "displayname: PostgreSQL")).unwrap();
    let line = 1 + text.lines().position(|line| line == "display_name: PostgreSQL").unwrap();
    refuses(&fleet, &format!("postgres.yaml:{line}")).await;
    fleet.ann.get(&format!("{POSTGRESES}/{id}")).await.expect(200);
    let other = fleet.make(POSTGRESES, "films").await;
    fleet.until_ready(&other).await;

    // Mended, with something new.
    fs::write(&file, text.replace("max_connections: 50", "max_connections: 60")).unwrap();
    fleet
        .look("the new limit", async || {
            let now = fleet.ann.get(&format!("{POSTGRESES}/{id}")).await.expect(200);
            if now["max_connections"] == 60 { Ok(()) } else { Err(now) }
        })
        .await;
    for id in [&id, &other] {
        fleet.delete(POSTGRESES, id).await;
        fleet.until_gone(id).await;
    }
    fs::remove_file(&file).unwrap();
    until_answered(&fleet, POSTGRESES, 404).await;
    fleet.ann.get(KAFKAS).await.expect(200);
    fleet.assert_nothing_held().await;
}

/// What somebody may have of the standard type of a kind.
async fn standard(fleet: &Fleet) -> Value {
    let quota = fleet.ann.get("/api/v1/quota").await.expect(200);
    assert_eq!(quota["is_limited"], true);
    let is_it = |item: &&Value| item["kind"] == "kafka" && item["instance_type"] == "standard";
    let items = quota["items"].as_array().unwrap();
    items.iter().find(is_it).map_or(Value::Null, |item| item["limit"].clone())
}

#[tokio::test]
async fn quota_is_taken_over_when_its_file_changes_and_a_bad_one_is_not() {
    let list = |limit: u32| {
        format!(
            "registered_service_accounts:\n  - username: ann\n    max_allowed_instances: {limit}\n"
        )
    };
    let (fleet, file) = with_file("--quota-file", "quota.yaml", &list(1)).await;
    assert_eq!(standard(&fleet).await, 1);
    let one = fleet.make(KAFKAS, "one").await;
    let body = json!({"name": "two"});
    let refused = fleet.ann.post(&format!("{KAFKAS}?async=true"), body).await.expect(403);
    assert_eq!(refused["code"], "KAFKAS-MGMT-5", "{refused:#}");

    fs::write(&file, list(2).replace("max_allowed", "most")).unwrap();
    refuses(&fleet, "quota.yaml:3").await;
    assert_eq!(standard(&fleet).await, 1, "the old stays in force");

    fs::write(&file, list(2)).unwrap();
    fleet
        .look("the new limit", async || match standard(&fleet).await {
            limit if limit == 2 => Ok(()),
            other => Err(other),
        })
        .await;
    let two = fleet.make(KAFKAS, "two").await;
    for id in [&one, &two] {
        fleet.until_ready(id).await;
        fleet.delete(KAFKAS, id).await;
        fleet.until_gone(id).await;
    }
    fleet.assert_nothing_held().await;
}

#[tokio::test]
async fn who_is_denied_while_the_server_runs_loses_what_it_has_and_gets_nothing_new() {
    let (fleet, file) = with_file("--denied-owners-file", "denied.yaml", "# nobody\n").await;
    let id = fleet.make(KAFKAS, "one").await;
    fleet.until_ready(&id).await;

    fs::write(&file, "- ben\n- {ann: yes}\n").unwrap();
    refuses(&fleet, "denied.yaml:2").await;
    fleet.until_ready(&id).await;

    fs::write(&file, "- ben\n- ann\n").unwrap();
    fleet.until_gone(&id).await;
    let refused = fleet.ann.post(&format!("{KAFKAS}?async=true"), json!({"name": "two"})).await;
    let refused = refused.expect(403);
    assert_eq!(refused["code"], "KAFKAS-MGMT-4", "{refused:#}");

    fs::write(&file, "- ben\n").unwrap();
    until_answered(&fleet, KAFKAS, 200).await;
    let id = fleet.make(KAFKAS, "two").await;
    fleet.until_ready(&id).await;
    fleet.delete(KAFKAS, &id).await;
    fleet.until_gone(&id).await;
    fleet.assert_nothing_held().await;
}
