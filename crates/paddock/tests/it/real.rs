//! An image that really runs: from a registry to a process behind a port, and to nothing again.

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

/// A server with the embedded runtime, a cluster of one CPU, and somebody who uses it.
struct Yard {
    server: Server,
    registry: Registry,
    ann: Client,
    cluster: String,
}

impl Yard {
    async fn open() -> Self {
        let registry = Registry::start();
        // As whoever starts it in a directory of its own: the data is beside it.
        let setup = Setup::new().arg("--runtime", "embedded").arg("--egress", "false");
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

    /// Waits until the deployment is as `is` wants it.
    async fn until(&self, id: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..1200 {
            last = self.get(id).await;
            if is(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}: never: {last:#}\n{}", self.server.stderr());
    }

    async fn until_status(&self, id: &str, status: &str) -> Value {
        self.until(id, status, |now| now["status"] == status).await
    }

    async fn until_gone(&self, id: &str) {
        for _ in 0..1200 {
            if self.ann.get(&path(id)).await.status == 404 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it does not go away: {:#}", self.get(id).await);
    }

    async fn logs(&self, id: &str, query: &str) -> String {
        let request = self.ann.request("GET", &format!("{}/logs{query}", path(id)));
        request.send().await.unwrap().text().await.unwrap()
    }
}

impl Drop for Yard {
    /// A test that failed must not leave containers behind: they would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.server.kill();
            traces::end(&self.data());
        }
    }
}

fn path(id: &str) -> String {
    format!("/api/v1/deployments/{id}")
}

/// What a web server says on its first page, once it listens.
fn page(endpoint: &Value) -> Result<String, std::io::Error> {
    let endpoint = endpoint.as_str().unwrap();
    let mut last = ask(endpoint);
    for _ in 0..100 {
        match &last {
            Ok(text) if !text.is_empty() => return last,
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
        last = ask(endpoint);
    }
    last
}

pub(crate) fn ask(endpoint: &str) -> Result<String, std::io::Error> {
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
async fn an_image_runs_scales_yields_survives_and_leaves_nothing() {
    let mut yard = Yard::open().await;
    let image = yard.registry.push("web");

    // It runs and can be reached.
    let id = yard.deploy(web(&image)).await;
    let runs = yard.until_status(&id, "running").await;
    assert!(page(&runs["endpoints"][0]).unwrap().contains("hello from a container"));

    // More of it.
    yard.ann.patch(&path(&id), json!({"replicas": 2})).await.expect(200);
    let runs = yard.until(&id, "two run", |d| d["endpoints"].as_array().unwrap().len() == 2).await;
    for endpoint in runs["endpoints"].as_array().unwrap() {
        assert!(page(endpoint).unwrap().contains("hello from a container"), "{endpoint}");
    }

    // Somebody more important needs the room of one of them; it comes back afterwards.
    let high = json!({"name": "high", "image": image, "priority": 10, "resources": {"cpu": "600m"},
        "command": ["sleep", "1000"]});
    let high = yard.deploy(high).await;
    yard.until_status(&high, "running").await;
    let yielded =
        yard.until(&id, "one yields", |d| d["endpoints"].as_array().unwrap().len() == 1).await;
    assert!(
        yielded["status_reason"]
            .as_str()
            .unwrap()
            .contains("1 of 2 replicas running. Preempted by high (priority 10).")
    );
    let why = yard.ann.get(&format!("{}/explain", path(&id))).await.expect(200);
    let waiting =
        why["replicas"].as_array().unwrap().iter().find(|r| r["verdict"] == "not_now").unwrap();
    assert_eq!(
        (&waiting["position"], &waiting["shortages"][0]["missing"]),
        (&json!(1), &json!({"cpu": 0.2}))
    );
    yard.ann.delete(&path(&high)).await.expect(202);
    yard.until_gone(&high).await;
    let runs =
        yard.until(&id, "two again", |d| d["endpoints"].as_array().unwrap().len() == 2).await;

    // The server dies; what runs goes on running and is there when the server is back.
    let endpoints = runs["endpoints"].as_array().unwrap().clone();
    yard.server.kill();
    for endpoint in &endpoints {
        assert!(
            page(endpoint).unwrap().contains("hello from a container"),
            "no server: {endpoint}"
        );
    }
    yard.server.again();
    yard.ann = yard.server.http_as("acme", PASSWORD).await;
    let adopted = yard.until_status(&id, "running").await;
    assert_eq!(adopted["endpoints"], json!(endpoints), "they are the same as before");
    for endpoint in &endpoints {
        assert!(page(endpoint).unwrap().contains("hello from a container"), "adopted: {endpoint}");
    }

    // The end: nothing is left.
    assert!(!traces::of(&yard.data()).is_empty(), "the search finds what there is");
    yard.ann.delete(&path(&id)).await.expect(202);
    yard.until_gone(&id).await;
    assert_eq!(traces::of(&yard.data()), Vec::<String>::new());
    let cluster = yard.ann.get(&format!("/api/v1/clusters/{}", yard.cluster)).await.expect(200);
    assert_eq!(cluster["capacity"]["cpu"]["used"], 0);
}

#[tokio::test]
async fn limits_are_enforced_and_logs_can_be_read() {
    let yard = Yard::open().await;
    let image = yard.registry.push("web");
    let hog = json!({"name": "hog", "image": image, "resources": {"cpu": "100m", "ram": "16Mi"},
        "restart": "never", "command": ["sh", "-c", "echo eating; tail /dev/zero"]});
    let hog = yard.deploy(hog).await;
    let failed = yard.until_status(&hog, "failed").await;
    let reason = failed["status_reason"].as_str().unwrap();
    assert_eq!(failed["reason_code"], "OOMKilled");
    assert!(reason.contains("memory limit of 16 MiB"), "{reason}");
    assert_eq!(yard.logs(&hog, "").await, "eating\n", "what it said last is kept");

    let speaker = json!({"name": "speaker", "image": image, "resources": {"cpu": "100m", "ram": "16Mi"},
        "env": {"WORD": "good day"}, "command": ["sh", "-c", "echo one; sleep 1; echo two >&2; sleep 1; echo $WORD; echo end"]});
    let speaker = yard.deploy(speaker).await;
    let said = yard.logs_until_it_runs(&speaker).await;
    assert_eq!(said, "one\ntwo\ngood day\nend\n");
    let done = yard.until_status(&speaker, "completed").await;
    assert_eq!((&done["reason_code"], &done["status_reason"]), (&json!("AsExpected"), &json!("")));
    assert_eq!(yard.logs(&speaker, "?tail=1").await, "end\n");
    for id in [hog, speaker] {
        yard.ann.delete(&path(&id)).await.expect(202);
        yard.until_gone(&id).await;
    }
    assert_eq!(traces::of(&yard.data()), Vec::<String>::new());
}

impl Yard {
    /// Follows a log from the moment when there is one to the end.
    async fn logs_until_it_runs(&self, id: &str) -> String {
        self.until(id, "it runs or ran", |d| {
            ["running", "completed"].contains(&d["status"].as_str().unwrap())
        })
        .await;
        self.logs(id, "?follow=true").await
    }
}

#[tokio::test]
async fn what_can_not_run_says_why_in_one_sentence_and_the_agent_goes_on() {
    let yard = Yard::open().await;
    let image = yard.registry.push("web");
    let nowhere = format!("{}/nothing:1", yard.registry.address);
    let cases = [
        (json!({"image": nowhere, "resources": {"cpu": "100m"}}), "nothing:1"),
        (json!({"image": "127.0.0.1:1/web:1", "resources": {"cpu": "100m"}}), "127.0.0.1:1"),
        (
            json!({"image": image, "resources": {"cpu": "100m"}, "command": ["/no/such/thing"], "restart": "never"}),
            "/no/such/thing",
        ),
        (json!({"image": image, "resources": {"cpu": "100m", "ram": "2Mi"}}), "at least 6Mi"),
        (
            json!({"image": image, "resources": {"cpu": "100m"}, "command": ["sh", "-c", "exit 3"], "restart": "never"}),
            "3",
        ),
    ];
    for (body, part) in cases {
        let id = yard.deploy(body).await;
        let failed = yard.until_status(&id, "failed").await;
        let reason = failed["status_reason"].as_str().unwrap();
        assert!(reason.contains(part) && !reason.contains('\n'), "{reason}");
        yard.ann.delete(&path(&id)).await.expect(202);
        yard.until_gone(&id).await;
    }
    // What no cluster has is waited for, and said so.
    let id = yard.deploy(json!({"image": image, "resources": {"unicorns": 1}})).await;
    let waits = yard.until(&id, "a reason", |d| d["reason_code"] != "AwaitingPlacement").await;
    assert_eq!(waits["reason_code"], "ExceedsCapacity", "{waits:#}");
    yard.ann.delete(&path(&id)).await.expect(202);
    // The agent goes on.
    let id = yard.deploy(web(&image)).await;
    yard.until_status(&id, "running").await;
    yard.ann.delete(&path(&id)).await.expect(202);
    yard.until_gone(&id).await;
    assert_eq!(traces::of(&yard.data()), Vec::<String>::new());
}
