//! Server startup: readiness, admin password, logs, runtime and locks.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use super::process::{PASSWORD, Server, Setup};

on_both_engines! {
    async fn server_is_ready_on_first_start_and_after_a_crash(engine: Engine) {
        let mut server = Setup::on(engine).await.start();
        assert_eq!(server.http().get("/api/v1/self/readiness").await.expect(200)["status"], "healthy");
        let stdout = server.stdout();
        let console = format!("console: {}/", server.address);
        assert!(stdout.contains(&console) && stdout.contains("/docs"), "{stdout}");
        let clusters = server.http_as("admin", PASSWORD).await.get("/api/v1/clusters").await;
        assert_eq!(clusters.json["items"][0]["name"], "local");
        let token = server.http_owner("acme").await;
        token.get("/api/v1/users/me").await.expect(200);
        server.kill();
        server.restart();
        server.http().get("/api/v1/self/readiness").await.expect(200);
        let clusters = server.http_as("acme", PASSWORD).await.get("/api/v1/clusters").await;
        assert_eq!(clusters.json["items"].as_array().unwrap().len(), 1, "{:#}", clusters.json);
    }
}

#[tokio::test]
async fn generated_password_is_shown_once_and_stays_valid() {
    let mut server = Setup::plain().start();
    let stdout = server.stdout();
    let password = generated_password(&stdout);
    assert_eq!(stdout.matches(&password).count(), 1, "{stdout}");
    server.http_as("admin", &password).await.get("/api/v1/users/me").await.expect(200);
    assert!(!server.stderr().contains(&password));

    server.kill();
    server.restart();
    assert!(!server.stdout().contains("password"), "{}", server.stdout());
    server.http_as("admin", &password).await.get("/api/v1/users/me").await.expect(200);
}

#[tokio::test]
async fn generated_password_is_not_lost_if_the_port_is_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let setup = Setup::plain().arg("--listen", &address);
    setup.run_to_exit().fails(1, &["error: --listen: ", &address, "in use"]);
    let server = setup.arg("--listen", "127.0.0.1:0").start();
    let password = generated_password(&server.stdout());
    server.http_as("admin", &password).await.get("/api/v1/users/me").await.expect(200);
}

#[tokio::test]
async fn admin_password_setting_applies_at_the_next_start() {
    let mut server = Setup::plain().env("PADDOCK_ADMIN_PASSWORD", "the first").start();
    assert!(!server.stdout().contains("password"));
    server.http_as("admin", "the first").await.get("/api/v1/users/me").await.expect(200);
    server.kill();
    server.setup = std::mem::replace(&mut server.setup, Setup::plain())
        .env("PADDOCK_ADMIN_PASSWORD", "the second");
    server.restart();
    let old = json!({ "username": "admin", "password": "the first" });
    server.http().post("/api/v1/login", old).await.expect(401);
    server.http_as("admin", "the second").await.get("/api/v1/users/me").await.expect(200);
}

fn generated_password(stdout: &str) -> String {
    let (_, rest) = stdout.split_once("generated password of user admin: ").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn log_format_is_configurable() {
    for format in ["json", "text"] {
        let setup = Setup::new().arg("--log-format", format).arg("--log", "debug");
        let mut server = setup.start();
        let ann = server.http_owner("acme").await;
        running(&ann, json!({ "resources": { "cpu": "100m" }, "image": "nginx:1" })).await;
        server.http().get("/api/v1/nothing").await.expect(404);
        server.terminate();
        assert!(server.wait_for_exit(Duration::from_secs(10)).success());
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
async fn missing_container_runtime_fails_deployment_with_instructions() {
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

async fn running(client: &Client, body: Value) {
    let id = client.post("/api/v1/deployments", body).await.text("id");
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
fn second_server_on_the_same_files_is_refused() {
    let server = Server::start();
    let data = server.setup.file("data");
    Setup::new()
        .arg("--data-dir", data.to_str().unwrap())
        .run_to_exit()
        .fails(1, &["error: --data-dir: ", "is in use by another server\n"]);

    let url = format!("sqlite:{}", data.join("other.db").display());
    let _other = Setup::new().arg("--database-url", &url).start();
    Setup::new()
        .arg("--database-url", &url)
        .run_to_exit()
        .fails(1, &["error: --database-url: ", "is in use by another server\n"]);
}
