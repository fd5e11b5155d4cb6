//! Keys of stored secrets: their loss and their rotation.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use testing::{Engine, on_both_engines};

use super::process::{PASSWORD, Server, Setup};

const WORD: &str = "env-word-5e1";

/// Starts a server with a deployment that has an environment variable; returns its path.
async fn with_secret(engine: Engine) -> (Server, String) {
    let server = Setup::on(engine).await.start();
    let ann = server.http_owner("ann").await;
    let body = json!({ "resources": { "cpu": "1m" }, "env": { "KEY": WORD } });
    let id = ann.post("/api/v1/deployments", body).await.text("id");
    ann.put("/api/v1/credentials/vault/token", json!({"secret": WORD})).await.expect(200);
    (server, format!("/api/v1/deployments/{id}"))
}

fn stop(server: &mut Server) {
    server.terminate();
    assert!(server.wait_for_exit(Duration::from_secs(10)).success());
}

async fn value(server: &Server, path: &str) -> Value {
    let ann = server.http_as("ann", PASSWORD).await;
    ann.get(path).await.expect(200)["env"]["KEY"].clone()
}

fn key_lines(server: &Server) -> Vec<String> {
    let text = fs::read_to_string(server.setup.file("data/seal.key")).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

on_both_engines! {
    async fn missing_key_file_is_not_replaced_while_secrets_exist(engine: Engine) {
        let (mut server, path) = with_secret(engine).await;
        stop(&mut server);
        let (file, backup) = (server.setup.file("data/seal.key"), server.setup.file("backup"));
        fs::rename(&file, &backup).unwrap();
        let refused = ["error: --data-dir: ", "seal.key is missing", "Restore", "--accept-lost-keys"];
        server.setup.run_to_exit().fails(1, &refused);
        assert!(!file.exists(), "no new key is created");

        // The key of another server is no replacement.
        let other = Setup::new().start();
        fs::copy(other.setup.file("data/seal.key"), &file).unwrap();
        server.setup.run_to_exit().fails(1, &["seal.key lacks keys", "v1:"]);

        fs::rename(&backup, &file).unwrap();
        server.restart();
        assert_eq!(value(&server, &path).await, WORD);
    }

    async fn lost_key_can_be_accepted_once(engine: Engine) {
        let (mut server, path) = with_secret(engine).await;
        stop(&mut server);
        fs::remove_file(server.setup.file("data/seal.key")).unwrap();
        server.setup.set("--accept-lost-keys", Some("true"));
        server.restart();
        assert_eq!(value(&server, &path).await, "•••");
        stop(&mut server);
        server.setup.set("--accept-lost-keys", None);
        server.restart();
        assert_eq!(value(&server, &path).await, "•••");
    }

    async fn rotated_key_re_encrypts_everything_while_the_server_runs(engine: Engine) {
        let (mut server, path) = with_secret(engine).await;
        let old = key_lines(&server);
        let admin = server.client();
        admin.run("login --username admin").succeeds();
        server.owner("eve", "eve").run("admin rekey").fails(1, &["administrator"]);
        if engine == Engine::Postgres {
            admin.run("admin rekey").fails(1, &["admin rekey --prepare", "copy seal.key"]);
            admin.run("admin rekey --prepare").succeeds().prints(&["prepared"]);
            assert_eq!(key_lines(&server).last(), old.last(), "a prepared key does not encrypt");
        }
        admin.run("admin rekey --wait=60").succeeds().prints(&["current"]);
        assert_eq!(value(&server, &path).await, WORD);
        let now = key_lines(&server);
        assert_eq!(now.len(), 2, "the old key is kept: backups of the database need it");
        assert_ne!(now.last(), old.last());

        // Nothing needs the old key any more.
        stop(&mut server);
        fs::write(server.setup.file("data/seal.key"), now.last().unwrap().clone() + "\n").unwrap();
        server.restart();
        assert_eq!(value(&server, &path).await, WORD);
    }
}

#[test]
fn key_file_without_secrets_is_created_again() {
    let mut server = Setup::new().start();
    stop(&mut server);
    fs::remove_file(server.setup.file("data/seal.key")).unwrap();
    server.restart();
    assert_eq!(key_lines(&server).len(), 1);
}
