//! The official clients of the fleet managers, which know nothing of Paddock, against a running server.
//!
//! What they do and check is in `sdk/`; here is who runs them, and what they say.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::process::{Outcome, PASSWORD, Server, bare};

/// Runs a script as a member of a new organization; what it saw.
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
    let said = Outcome::new(script, command.output().unwrap()).succeeds();
    let left = ann.get("/api/v1/instances").await.expect(200);
    assert_eq!(left["items"], json!([]), "nothing is left");
    serde_json::from_str(&said.stdout).unwrap()
}

/// What both provoke.
const CODES: [(u32, u16); 7] =
    [(36, 409), (32, 400), (103, 400), (7, 404), (23, 400), (15, 401), (113, 404)];

/// Both must have seen the same.
fn check(seen: &Value) {
    assert_eq!(seen["types"], json!(["developer", "standard"]));
    let order = ["accepted", "preparing", "provisioning", "ready"];
    let statuses = seen["statuses"].as_array().unwrap();
    // A quick server may be past some of them when it is asked.
    let first = statuses.iter().take_while(|status| *status != "ready");
    let places: Vec<_> = first.map(|status| order.iter().position(|one| status == one)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&json!("ready")));
    for (code, status) in CODES {
        assert_eq!(seen["errors"][format!("KAFKAS-MGMT-{code}")], status, "{seen:#}");
    }
}

/// A path in the variable that `./test` sets.
fn installed(variable: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    let value =
        value.unwrap_or_else(|| panic!("this test needs {variable}: run ./test, which sets it"));
    value.into()
}

#[tokio::test]
async fn the_client_for_javascript_can_do_all_that_it_offers() {
    let mut node = bare("node");
    node.env("PADDOCK_TEST_NODE_MODULES", installed("PADDOCK_TEST_NODE_MODULES"));
    check(&run("kafka.mjs", node).await);
}

#[tokio::test]
async fn the_client_for_python_can_do_all_that_it_offers() {
    let python = bare(installed("PADDOCK_TEST_PYTHON").to_str().unwrap());
    check(&run("kafka.py", python).await);
}
