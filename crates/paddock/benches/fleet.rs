//! Benchmark: creating instances through the HTTP API of the binary, with an agent that responds
//! immediately; see `./bench`.
//!
//! Latency is measured from sending the request to receiving the event `ready`. All samples count.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "the output is a table for humans")]

#[path = "support/server.rs"]
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use server::{Observed, Server, text, until_observed};

const SEQUENTIAL: usize = 300;
const CONCURRENT: usize = 10_000;
const CLIENTS: usize = 100;

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    println!("| create → ready, SQLite, durable | all ready after | p50 | p99 | max |");
    println!("|---|---|---|---|---|");
    sequential().await;
    concurrent().await;
}

async fn sequential() {
    let (server, observed) = ready_server().await;
    let (began, mut times) = (Instant::now(), Vec::new());
    for n in 0..SEQUENTIAL {
        let sent = Instant::now();
        let id = create(&server, n).await;
        times.push(until_observed(&observed, &id).await.duration_since(sent));
    }
    print(&format!("{SEQUENTIAL} sequentially"), began.elapsed(), times);
}

async fn concurrent() {
    let (server, observed) = ready_server().await;
    let began = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (server, observed) = (server.clone(), observed.clone());
        clients.spawn(async move {
            let mut created = Vec::new();
            for n in 0..CONCURRENT / CLIENTS {
                let sent = Instant::now();
                created.push((create(&server, client * CONCURRENT + n).await, sent));
            }
            let mut times = Vec::new();
            for (id, sent) in created {
                times.push(until_observed(&observed, &id).await.duration_since(sent));
            }
            times
        });
    }
    let times = clients.join_all().await.into_iter().flatten().collect();
    print(&format!("{CONCURRENT} concurrently, {CLIENTS} clients"), began.elapsed(), times);
}

async fn ready_server() -> (Arc<Server>, Observed) {
    let (server, observed) = (Arc::new(Server::start(None).await), Observed::default());
    server.cluster().await;
    server.watch("instance.ready", observed.clone()).await;
    (server, observed)
}

async fn create(server: &Server, n: usize) -> String {
    let body = json!({"name": format!("orders-{n}"), "kind": "kafka", "plan": "standard.x1"});
    text(&server.post("/api/v1/instances", &body).await, "id")
}

fn print(name: &str, took: Duration, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let (total, p50, p99, max) = (took.as_secs_f64(), at(50), at(99), at(100));
    println!("| {name} | {total:.1} s | {p50:.1} ms | {p99:.1} ms | {max:.1} ms |");
}
