//! Runs the binary as a server, for benchmarks.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;

const PASSWORD: &str = "benchmark password";

/// Time at which the watched event was received, by subject.
pub(crate) type Observed = Arc<Mutex<HashMap<String, Instant>>>;

/// A server process that is killed on drop.
pub(crate) struct Server {
    child: Child,
    base: String,
    http: reqwest::Client,
    token: String,
    _dir: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) async fn start(database: Option<&str>) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let mut command = Command::new(env!("CARGO_BIN_EXE_paddock"));
        command.args(["server", "--runtime", "simulated", "--log", "warn", "--listen", &address]);
        command.args(["--max-deployments-per-organization", "1000000"]);
        command.args(["--max-deployments-per-cluster", "1000000"]);
        command.arg("--data-dir").arg(dir.path().join("data"));
        command.args(database.map(|url| format!("--database-url={url}")));
        command.env("PADDOCK_ADMIN_PASSWORD", PASSWORD).stdout(Stdio::null());
        let child = command.spawn().expect("the server starts");
        let (base, http) = (format!("http://{address}"), reqwest::Client::new());
        let mut server = Self { child, base, http, token: String::new(), _dir: dir };
        while server.get("/api/v1/self/readiness").await.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.sign_up().await;
        server
    }

    async fn sign_up(&mut self) {
        let name = format!("bench-{}", std::process::id());
        let owner = json!({"username": name, "password": PASSWORD});
        self.post("/api/v1/organizations", &json!({"name": name, "owner": owner})).await;
        let body = json!({"username": name, "password": PASSWORD});
        let signed_in = self.post("/api/v1/login", &body).await;
        self.token = text(&signed_in, "token");
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.token);
        request.send().await.ok()?.json().await.ok()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(&self.token);
        let answer = request.json(body).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    pub(crate) async fn cluster(&self) -> String {
        let body = json!({"name": "bench", "capacity": {"cpu": 1_000_000, "ram": "100Ti"}});
        let id = text(&self.post("/api/v1/clusters", &body).await, "id");
        let path = format!("/api/v1/clusters/{id}");
        while self.get(&path).await.is_none_or(|cluster| cluster["status"] != "ready") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        id
    }

    /// Records the arrival time of events of one type.
    pub(crate) async fn watch(&self, change: &str, observed: Observed) {
        let request = self.http.get(format!("{}/api/v1/events?type={change}", self.base));
        let request = request.bearer_auth(&self.token).header("accept", "text/event-stream");
        let mut chunks = request.send().await.expect("a stream").bytes_stream();
        let mut rest = String::new();
        base::task::spawn("events", async move {
            while let Some(Ok(chunk)) = chunks.next().await {
                rest.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((line, after)) = rest.split_once('\n') {
                    if let Some(data) = line.strip_prefix("data: ")
                        && let Ok(event) = serde_json::from_str::<Value>(data)
                    {
                        let mut observed = observed.lock().unwrap_or_else(PoisonError::into_inner);
                        observed.insert(text(&event, "subject"), Instant::now());
                    }
                    rest = after.to_owned();
                }
            }
        });
    }
}

pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().expect("a text").to_owned()
}

/// Waits for the event of a subject.
pub(crate) async fn until_observed(observed: &Observed, id: &str) -> Instant {
    loop {
        let at = observed.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        if let Some(at) = at {
            return at;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
