//! The official fleet manager SDKs against a running server.
//!
//! The scripts in `sdk/` perform and check the calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::process::{Outcome, PASSWORD, Server, bare};

/// Runs a script as owner of a new organization and returns its output.
async fn run(script: &str, mut command: Command) -> Value {
    let server = Server::start();
    let ann = server.http_owner("ann").await;
    let invite = ann.post("/api/v1/invites", json!({})).await.text("code");
    let ben = json!({"code": invite, "username": "ben", "password": PASSWORD});
    server.http().post("/api/v1/invites/redeem", ben).await.expect(201);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sdk").join(script))
        .env("SERVER", &server.address)
        .env("USERNAME", "ann")
        .env("PASSWORD", PASSWORD)
        .env("COLLEAGUE", "ben");
    let outcome = Outcome::new(script, command.output().unwrap()).succeeds();
    let left = ann.get("/api/v1/instances").await.expect(200);
    assert_eq!(left["items"], json!([]), "no instances are left");
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// Error codes that both scripts provoke.
const CODES: [(u32, u16); 7] =
    [(36, 409), (32, 400), (103, 400), (7, 404), (23, 400), (15, 401), (113, 404)];

/// Checks the output, which is the same for both SDKs.
fn check(observed: &Value) {
    assert_eq!(observed["types"], json!(["developer", "standard"]));
    let order = ["accepted", "preparing", "provisioning", "ready"];
    let statuses = observed["statuses"].as_array().unwrap();
    // Polling may miss some statuses.
    let first = statuses.iter().take_while(|status| *status != "ready");
    let places: Vec<_> = first.map(|status| order.iter().position(|one| status == one)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&json!("ready")));
    for (code, status) in CODES {
        assert_eq!(observed["errors"][format!("KAFKAS-MGMT-{code}")], status, "{observed:#}");
    }
}

/// A path from an environment variable that `./test` sets.
fn installed(variable: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    let value = value.unwrap_or_else(|| panic!("{variable} is not set: run ./test"));
    value.into()
}

#[tokio::test]
async fn javascript_sdk_is_supported() {
    let mut node = bare("node");
    node.env("PADDOCK_TEST_NODE_MODULES", installed("PADDOCK_TEST_NODE_MODULES"));
    check(&run("kafka.mjs", node).await);
}

#[tokio::test]
async fn python_sdk_is_supported() {
    let python = bare(installed("PADDOCK_TEST_PYTHON").to_str().unwrap());
    check(&run("kafka.py", python).await);
}
