//! Secrets are never logged, and credentials that are only verified are never stored.

use std::fs;
use std::time::Duration;

use serde_json::json;
use testing::on_both_engines;

use super::process::{PASSWORD, Setup};

const WRONG: &str = "wrong-word-9d1";
const ENV: &str = "env-word-7f3";
const NEW: &str = "new-word-2c8";

on_both_engines! {
    async fn secrets_are_neither_logged_nor_stored(engine: Engine) {
        let mut server = Setup::on(engine).await.arg("--log", "trace").start();
        let ann = server.http_owner("acme").await;
        let wrong = json!({ "username": "acme", "password": WRONG });
        server.http().post("/api/v1/login", wrong.clone()).await.expect(401);
        server.http().post("/user/login/", wrong).await.expect(401);
        let basic = server.http().request("GET", "/user/").basic_auth("acme", Some(PASSWORD));
        server.http().send(basic).await.expect(200);
        let bad = server.http().request("GET", "/user/").basic_auth("acme", Some(WRONG));
        server.http().send(bad).await.expect(401);
        let right = json!({ "username": "acme", "password": PASSWORD });
        let token = server.http().post("/api/v1/login", right).await.text("token");
        let change = json!({ "password": NEW, "current_password": PASSWORD });
        ann.patch("/api/v1/users/me", change).await.expect(200);
        let ann = server.http_as("acme", NEW).await;

        let key = ann.request("POST", "/api/v1/invites").header("idempotency-key", "k");
        let first = ann.send(key.json(&json!({}))).await.text("code");
        let second = ann.patch("/organization/invite/", json!({})).await.text("code");
        server.http().get(&format!("/organization/invite/?code={first}")).await.expect(200);
        server.http().post("/api/v1/invites/check", json!({ "code": second })).await.expect(200);
        let join = json!({ "code": first, "username": "bob", "password": PASSWORD });
        server.http().post("/api/v1/invites/redeem", join).await.expect(201);
        let join = json!({ "username": "eve", "password": PASSWORD });
        let by_bearer = server.http().with_token(&second);
        by_bearer.post("/organization/invite/", join).await.expect(201);

        let body = json!({ "name": "web", "image": "nginx:1", "resources": { "cpu": "1m" }, "env": { "KEY": ENV } });
        let key = ann.request("POST", "/api/v1/deployments").header("idempotency-key", "d");
        let id = ann.send(key.json(&body)).await.text("id");
        let history = ann.get(&format!("/api/v1/deployments/{id}/history")).await.expect(200);
        assert!(!history.to_string().contains(ENV), "{history:#}");
        let broken = json!({ "name": 5, "resources": {}, "env": { "KEY": ENV } });
        ann.post("/api/v1/deployments", broken).await.expect(400);
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.terminate();
        assert!(server.wait_for_exit(Duration::from_secs(10)).success());

        let secrets = [token.as_str(), first.as_str(), second.as_str(), PASSWORD, WRONG, NEW];
        let logs = [server.stdout(), server.stderr()].concat();
        assert!(logs.contains("/organization/invite/"), "the log is there: {logs}");
        for secret in secrets.iter().chain(&[ENV]) {
            let line = logs.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} is in the log");
        }
        if let Some(url) = server.setup.database_url() {
            let stored = testing::stored_text(url).await;
            assert!(stored.contains("nginx:1"), "the deployment's row is there");
            for secret in secrets.iter().chain(&[ENV]) {
                assert!(!stored.contains(secret), "{secret} is in the database");
            }
        }
        for file in fs::read_dir(server.setup.file("data")).unwrap() {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            for secret in secrets.iter().chain(&[ENV]) {
                let is_there = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!is_there, "{secret} is in {}", path.display());
            }
        }
    }
}

#[tokio::test]
async fn database_password_is_not_logged() {
    let url = testing::create_postgres().await.replace("paddock@", "paddock:pg-word-5a1@");
    assert!(url.contains("pg-word"), "{url}");
    let mut server = Setup::new().arg("--database-url", &url).arg("--log", "trace").start();
    server.http_owner("acme").await;
    server.terminate();
    assert!(server.wait_for_exit(Duration::from_secs(10)).success());
    let logs = [server.stdout(), server.stderr()].concat();
    assert!(!logs.contains("pg-word-5a1"), "{logs}");
}
