//! A server from its start to its rest: readiness, the administrator, logs, the default runtime.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use super::process::{PASSWORD, Server, Setup};

on_both_engines! {
    async fn it_is_ready_on_an_empty_place_and_again_later(engine: Engine) {
        let mut server = Setup::on(engine).await.start();
        assert_eq!(server.http().get("/api/v1/self/readiness").await.expect(200)["status"], "healthy");
        let says = server.stdout();
        let console = format!("console: {}/", server.address);
        assert!(says.contains(&console) && says.contains("/docs"), "{says}");
        let clusters = server.http_as("admin", PASSWORD).await.get("/api/v1/clusters").await;
        assert_eq!(clusters.json["items"][0]["name"], "local");
        let token = server.http_owner("acme").await;
        token.get("/api/v1/users/me").await.expect(200);
        server.kill();
        server.again();
        server.http().get("/api/v1/self/readiness").await.expect(200);
        let clusters = server.http_as("acme", PASSWORD).await.get("/api/v1/clusters").await;
        assert_eq!(clusters.json["items"].as_array().unwrap().len(), 1, "{:#}", clusters.json);
    }
}

#[tokio::test]
async fn a_made_up_password_is_shown_once_and_works_for_ever() {
    let mut server = Setup::plain().start();
    let says = server.stdout();
    let password = made_up(&says);
    assert_eq!(says.matches(&password).count(), 1, "{says}");
    server.http_as("admin", &password).await.get("/api/v1/users/me").await.expect(200);
    assert!(!server.stderr().contains(&password));

    server.kill();
    server.again();
    assert!(!server.stdout().contains("password"), "{}", server.stdout());
    server.http_as("admin", &password).await.get("/api/v1/users/me").await.expect(200);
}

#[tokio::test]
async fn a_made_up_password_is_not_lost_to_a_port_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let setup = Setup::plain().arg("--listen", &address);
    setup.refused().fails(1, &["paddock: --listen: ", &address, "in use"]);
    let server = setup.arg("--listen", "127.0.0.1:0").start();
    let password = made_up(&server.stdout());
    server.http_as("admin", &password).await.get("/api/v1/users/me").await.expect(200);
}

#[tokio::test]
async fn a_new_password_of_the_administrator_holds_from_the_next_start_on() {
    let mut server = Setup::plain().env("PADDOCK_ADMIN_PASSWORD", "the first").start();
    assert!(!server.stdout().contains("password"));
    server.http_as("admin", "the first").await.get("/api/v1/users/me").await.expect(200);
    server.kill();
    server.setup = std::mem::replace(&mut server.setup, Setup::plain())
        .env("PADDOCK_ADMIN_PASSWORD", "the second");
    server.again();
    let old = json!({ "username": "admin", "password": "the first" });
    server.http().post("/api/v1/login", old).await.expect(401);
    server.http_as("admin", "the second").await.get("/api/v1/users/me").await.expect(200);
}

fn made_up(says: &str) -> String {
    let (_, rest) = says.split_once("user admin has the password ").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn logs_are_json_when_asked_for_and_plain_otherwise() {
    for format in ["json", "text"] {
        let setup = Setup::new().arg("--log-format", format).arg("--log", "debug");
        let mut server = setup.start();
        let ann = server.http_owner("acme").await;
        running(&ann, json!({ "resources": { "cpu": "100m" }, "image": "nginx:1" })).await;
        server.http().get("/api/v1/nothing").await.expect(404);
        server.terminate();
        assert!(server.ended(Duration::from_secs(10)).success());
        let logs = server.stderr();
        assert!(logs.lines().count() > 5 && !logs.contains('\u{1b}'), "{logs}");
        for line in logs.lines().filter(|_| format == "json") {
            let entry: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert!(entry["level"].is_string() && entry["message"].is_string(), "{line}");
            assert!(entry["timestamp"].is_string(), "{line}");
        }
        assert!(logs.contains("/api/v1/organizations") && logs.contains("stopped"), "{logs}");
    }
}

#[tokio::test]
async fn without_a_container_runtime_an_image_fails_and_says_what_to_do() {
    let setup = Setup::plain().arg("--runtime", "docker");
    let server = setup.env("DOCKER_HOST", "unix:///nowhere/docker.sock").start();
    let ann = server.http_owner("acme").await;
    let cpu = json!({ "cpu": "100m" });
    running(&ann, json!({ "resources": cpu })).await;
    let image = json!({ "resources": cpu, "image": "nginx:1" });
    let id = ann.post("/api/v1/deployments", image).await.text("id");
    let failed = until(&ann, &id, "failed").await;
    let reason = failed["status_reason"].as_str().unwrap();
    assert!(reason.contains("/nowhere/docker.sock") && reason.contains("--runtime"), "{reason}");
}

async fn running(client: &Client, wanted: Value) {
    let id = client.post("/api/v1/deployments", wanted).await.text("id");
    until(client, &id, "running").await;
}

async fn until(client: &Client, id: &str, status: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..400 {
        last = client.get(&format!("/api/v1/deployments/{id}")).await.expect(200);
        if last["status"] == status {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{id} does not become {status}: {last:#}");
}

#[test]
fn two_servers_can_not_share_their_files() {
    let server = Server::start();
    let data = server.setup.file("data");
    Setup::new()
        .arg("--data-dir", data.to_str().unwrap())
        .refused()
        .fails(1, &["paddock: --data-dir: ", "is in use by another server\n"]);

    let url = format!("sqlite:{}", data.join("other.db").display());
    let _other = Setup::new().arg("--database-url", &url).start();
    Setup::new()
        .arg("--database-url", &url)
        .refused()
        .fails(1, &["paddock: --database-url: ", "is in use by another server\n"]);
}
