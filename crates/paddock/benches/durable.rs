//! How fast deployments are asked for and placed, through the HTTP API of the real binary; see
//! `./bench`.
//!
//! 100 clients each ask for one deployment after the other. The time of one goes from sending the
//! request to the moment when the stream of events says that it is `scheduled`: by then it is durable
//! that it was asked for, and that it has its place. All times count, none is left out.
#![expect(clippy::print_stdout, reason = "a table for people is what it is for")]

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;

const CLIENTS: usize = 100;
const EACH: usize = 30;
const PASSWORD: &str = "a password for a while";

/// When each deployment was seen to be scheduled.
type Seen = Arc<Mutex<HashMap<String, Instant>>>;

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    println!(
        "| create → scheduled, {CLIENTS} clients, {} in all | rate | p50 | p99 | longest |",
        CLIENTS * EACH
    );
    println!("|---|---|---|---|---|");
    measure("SQLite, durable (synchronous FULL)", None).await;
    match std::env::var("PADDOCK_BENCH_POSTGRES_URL") {
        Ok(url) => measure("PostgreSQL, durable (as packaged)", Some(&url)).await,
        Err(_) => println!("| PostgreSQL: PADDOCK_BENCH_POSTGRES_URL is not set | | | | |"),
    }
}

/// A server that ends with this.
struct Server {
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
    async fn start(database: Option<&str>) -> Self {
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

    async fn get(&self, path: &str) -> Option<Value> {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.token);
        request.send().await.ok()?.json().await.ok()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(&self.token);
        let answer = request.json(body).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    async fn cluster(&self) -> String {
        let body = json!({"name": "bench", "capacity": {"cpu": 1_000_000}});
        let id = text(&self.post("/api/v1/clusters", &body).await, "id");
        let path = format!("/api/v1/clusters/{id}");
        while self.get(&path).await.is_none_or(|cluster| cluster["status"] != "ready") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        id
    }

    /// Notes when deployments are scheduled, as the stream of events says it.
    async fn watch(&self, seen: Seen) {
        let request =
            self.http.get(format!("{}/api/v1/events?type=deployment.scheduled", self.base));
        let request = request.bearer_auth(&self.token).header("accept", "text/event-stream");
        let mut chunks = request.send().await.expect("a stream").bytes_stream();
        let mut rest = String::new();
        store::task::spawn("events", async move {
            while let Some(Ok(chunk)) = chunks.next().await {
                rest.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((line, after)) = rest.split_once('\n') {
                    if let Some(data) = line.strip_prefix("data: ")
                        && let Ok(event) = serde_json::from_str::<Value>(data)
                    {
                        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                        seen.insert(text(&event, "subject"), Instant::now());
                    }
                    rest = after.to_owned();
                }
            }
        });
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().expect("a text").to_owned()
}

async fn measure(name: &str, database: Option<&str>) {
    let server = Arc::new(Server::start(database).await);
    let (cluster, seen) = (server.cluster().await, Seen::default());
    server.watch(seen.clone()).await;
    let body = json!({
        "name": "bench", "image": "bench:1", "cluster_id": cluster, "resources": {"cpu": "10m"},
    });
    let began = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (server, seen, body) = (server.clone(), seen.clone(), body.clone());
        clients.spawn(async move {
            let mut times = Vec::with_capacity(EACH);
            for _ in 0..EACH {
                times.push(one(&server, &seen, &body).await);
            }
            times
        });
    }
    let mut times: Vec<Duration> = clients.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let rate = u32::try_from(times.len()).map_or(0.0, f64::from) / took.as_secs_f64();
    let (half, most, longest) = (at(50), at(99), at(100));
    println!("| {name} | {rate:.0}/s | {half:.1} ms | {most:.1} ms | {longest:.1} ms |");
}

/// Asks for one, and waits until it is scheduled.
async fn one(server: &Server, seen: &Seen, body: &Value) -> Duration {
    let sent = Instant::now();
    let id = text(&server.post("/api/v1/deployments", body).await, "id");
    loop {
        let at = seen.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
        if let Some(at) = at {
            return at.duration_since(sent);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
