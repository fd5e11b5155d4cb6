//! Deployments in real containers, from a registry to a published port.

pub(crate) mod registry;
pub(crate) mod traces;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use testing::Client;

use super::process::{PASSWORD, Server, Setup};
use registry::Registry;

/// A server with the embedded runtime, a cluster of one CPU, and an organization.
struct RealServer {
    server: Server,
    registry: Registry,
    ann: Client,
    cluster: String,
}

impl RealServer {
    async fn open() -> Self {
        let registry = Registry::start();
        // A relative data directory, as with the default settings.
        let setup = Setup::new()
            .arg("--runtime", "embedded")
            .arg("--egress", "false")
            .arg("--allow-address", "127.0.0.0/8");
        let setup = setup.arg("--data-dir", "data");
        let server = setup.start();
        let ann = server.http_owner("acme").await;
        let body = json!({"name": "yard", "capacity": {"cpu": 1, "ram": "256Mi"}});
        let cluster = ann.post("/api/v1/clusters", body).await.text("id");
        Self { server, registry, ann, cluster }
    }

    fn data(&self) -> PathBuf {
        self.server.setup.file("data")
    }

    async fn deploy(&self, mut body: Value) -> String {
        body["cluster_id"] = json!(self.cluster);
        self.ann.post("/api/v1/deployments", body).await.text("id")
    }

    async fn get(&self, id: &str) -> Value {
        self.ann.get(&path(id)).await.expect(200)
    }

    /// Polls until the deployment satisfies the condition.
    async fn until(&self, id: &str, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..1200 {
            last = self.get(id).await;
            if condition(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}: never: {last:#}\n{}", self.server.stderr());
    }

    async fn until_status(&self, id: &str, status: &str) -> Value {
        self.until(id, status, |now| now["status"] == status).await
    }

    async fn until_deleted(&self, id: &str) {
        for _ in 0..1200 {
            if self.ann.get(&path(id)).await.status == 404 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not deleted: {:#}", self.get(id).await);
    }

    async fn logs(&self, id: &str, query: &str) -> String {
        let request = self.ann.request("GET", &format!("{}/logs{query}", path(id)));
        request.send().await.unwrap().text().await.unwrap()
    }
}

impl Drop for RealServer {
    /// Removes containers of a failed test, which would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.server.kill();
            traces::clean_up(&self.data());
        }
    }
}

fn path(id: &str) -> String {
    format!("/api/v1/deployments/{id}")
}

/// Fetches the first page of a web server, waiting until it listens.
fn page(endpoint: &Value) -> Result<String, std::io::Error> {
    let endpoint = endpoint.as_str().unwrap();
    let mut last = http_get(endpoint);
    for _ in 0..100 {
        match &last {
            Ok(text) if !text.is_empty() => return last,
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
        last = http_get(endpoint);
    }
    last
}

pub(crate) fn http_get(endpoint: &str) -> Result<String, std::io::Error> {
    let mut stream = TcpStream::connect(endpoint)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn web(image: &str) -> Value {
    json!({"name": "web", "image": image, "resources": {"cpu": "300m", "ram": "32Mi"}, "ports": [8080]})
}

#[tokio::test]
async fn container_runs_scales_is_preempted_survives_and_is_removed_completely() {
    let mut real = RealServer::open().await;
    let image = real.registry.push("web");

    // The container runs and is reachable.
    let id = real.deploy(web(&image)).await;
    let runs = real.until_status(&id, "running").await;
    assert!(page(&runs["endpoints"][0]).unwrap().contains("hello from a container"));

    // Scale up.
    real.ann.patch(&path(&id), json!({"replicas": 2})).await.expect(200);
    let runs = real.until(&id, "two run", |d| d["endpoints"].as_array().unwrap().len() == 2).await;
    for endpoint in runs["endpoints"].as_array().unwrap() {
        assert!(page(endpoint).unwrap().contains("hello from a container"), "{endpoint}");
    }

    // A deployment of higher priority preempts one replica, which restarts afterwards.
    let high = json!({"name": "high", "image": image, "priority": 10, "resources": {"cpu": "600m"},
        "command": ["sleep", "1000"]});
    let high = real.deploy(high).await;
    real.until_status(&high, "running").await;
    let preempted = real
        .until(&id, "one is preempted", |d| d["endpoints"].as_array().unwrap().len() == 1)
        .await;
    assert!(
        preempted["status_reason"]
            .as_str()
            .unwrap()
            .contains("1 of 2 replicas running. Preempted by high (priority 10).")
    );
    let why = real.ann.get(&format!("{}/explain", path(&id))).await.expect(200);
    let waiting =
        why["replicas"].as_array().unwrap().iter().find(|r| r["verdict"] == "not_now").unwrap();
    assert_eq!(
        (&waiting["position"], &waiting["shortages"][0]["missing"]),
        (&json!(1), &json!({"cpu": 0.2}))
    );
    real.ann.delete(&path(&high)).await.expect(202);
    real.until_deleted(&high).await;
    let runs =
        real.until(&id, "two again", |d| d["endpoints"].as_array().unwrap().len() == 2).await;

    // Containers survive a server crash and are adopted at the restart.
    let endpoints = runs["endpoints"].as_array().unwrap().clone();
    real.server.kill();
    for endpoint in &endpoints {
        assert!(
            page(endpoint).unwrap().contains("hello from a container"),
            "no server: {endpoint}"
        );
    }
    real.server.restart();
    real.ann = real.server.http_as("acme", PASSWORD).await;
    let adopted = real.until_status(&id, "running").await;
    assert_eq!(adopted["endpoints"], json!(endpoints), "endpoints are unchanged");
    for endpoint in &endpoints {
        assert!(page(endpoint).unwrap().contains("hello from a container"), "adopted: {endpoint}");
    }

    // Deletion leaves nothing behind.
    assert!(!traces::find(&real.data()).is_empty(), "traces are found while containers run");
    real.ann.delete(&path(&id)).await.expect(202);
    real.until_deleted(&id).await;
    assert_eq!(traces::find(&real.data()), Vec::<String>::new());
    let cluster = real.ann.get(&format!("/api/v1/clusters/{}", real.cluster)).await.expect(200);
    assert_eq!(cluster["capacity"]["cpu"]["used"], 0);
}

#[tokio::test]
async fn limits_are_enforced_and_logs_are_readable() {
    let real = RealServer::open().await;
    let image = real.registry.push("web");
    let hog = json!({"name": "hog", "image": image, "resources": {"cpu": "100m", "ram": "16Mi"},
        "restart": "never", "command": ["sh", "-c", "echo eating; tail /dev/zero"]});
    let hog = real.deploy(hog).await;
    let failed = real.until_status(&hog, "failed").await;
    let reason = failed["status_reason"].as_str().unwrap();
    assert_eq!(failed["reason_code"], "OOMKilled");
    assert!(reason.contains("memory limit of 16 MiB"), "{reason}");
    assert_eq!(real.logs(&hog, "").await, "eating\n", "the log tail is stored");

    let speaker = json!({"name": "speaker", "image": image, "resources": {"cpu": "100m", "ram": "16Mi"},
        "env": {"WORD": "good day"}, "command": ["sh", "-c", "echo one; sleep 1; echo two >&2; sleep 1; echo $WORD; echo end"]});
    let speaker = real.deploy(speaker).await;
    let logs = real.follow_logs(&speaker).await;
    assert_eq!(logs, "one\ntwo\ngood day\nend\n");
    let done = real.until_status(&speaker, "completed").await;
    assert_eq!((&done["reason_code"], &done["status_reason"]), (&json!("AsExpected"), &json!("")));
    assert_eq!(real.logs(&speaker, "?tail=1").await, "end\n");
    for id in [hog, speaker] {
        real.ann.delete(&path(&id)).await.expect(202);
        real.until_deleted(&id).await;
    }
    assert_eq!(traces::find(&real.data()), Vec::<String>::new());
}

impl RealServer {
    /// Waits until the deployment has started and follows its log to the end.
    async fn follow_logs(&self, id: &str) -> String {
        self.until(id, "started", |d| {
            ["running", "completed"].contains(&d["status"].as_str().unwrap())
        })
        .await;
        self.logs(id, "?follow=true").await
    }
}

#[tokio::test]
async fn failed_start_reports_reason_and_agent_continues() {
    let real = RealServer::open().await;
    let image = real.registry.push("web");
    let nowhere = format!("{}/nothing:1", real.registry.address);
    let cases = [
        (json!({"image": nowhere, "resources": {"cpu": "100m"}}), "nothing:1"),
        (json!({"image": "127.0.0.1:1/web:1", "resources": {"cpu": "100m"}}), "127.0.0.1:1"),
        (
            json!({"image": image, "resources": {"cpu": "100m"}, "command": ["/no/such/thing"], "restart": "never"}),
            "/no/such/thing",
        ),
        (
            json!({"image": image, "resources": {"cpu": "100m"}, "command": ["sh", "-c", "exit 3"], "restart": "never"}),
            "3",
        ),
    ];
    for (body, part) in cases {
        let id = real.deploy(body).await;
        let failed = real.until_status(&id, "failed").await;
        let reason = failed["status_reason"].as_str().unwrap();
        assert!(reason.contains(part) && !reason.contains('\n'), "{reason}");
        real.ann.delete(&path(&id)).await.expect(202);
        real.until_deleted(&id).await;
    }
    // A resource that no cluster has keeps the deployment pending with a reason.
    let id = real.deploy(json!({"image": image, "resources": {"unicorns": 1}})).await;
    let pending = real.until(&id, "a reason", |d| d["reason_code"] != "AwaitingPlacement").await;
    assert_eq!(pending["reason_code"], "ExceedsCapacity", "{pending:#}");
    real.ann.delete(&path(&id)).await.expect(202);
    // The agent continues.
    let id = real.deploy(web(&image)).await;
    real.until_status(&id, "running").await;
    real.ann.delete(&path(&id)).await.expect(202);
    real.until_deleted(&id).await;
    assert_eq!(traces::find(&real.data()), Vec::<String>::new());
}
