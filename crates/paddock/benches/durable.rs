//! Benchmark: creating and placing deployments through the HTTP API of the binary; see `./bench`.
//!
//! 100 clients each create one deployment after the other. Latency is measured from sending the
//! request to receiving the event `scheduled`: by then, deployment and placement are durable. All
//! samples count.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "the output is a table for humans")]

#[path = "support/server.rs"]
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::{Observed, Server, text, until_observed};

const CLIENTS: usize = 100;
const EACH: usize = 30;

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    println!(
        "| create → scheduled, {CLIENTS} clients, {} in all | rate | p50 | p99 | max |",
        CLIENTS * EACH
    );
    println!("|---|---|---|---|---|");
    measure("SQLite, durable (synchronous FULL)", None).await;
    match std::env::var("PADDOCK_BENCH_POSTGRES_URL") {
        Ok(url) => measure("PostgreSQL, durable (as packaged)", Some(&url)).await,
        Err(_) => println!("| PostgreSQL: PADDOCK_BENCH_POSTGRES_URL is not set | | | | |"),
    }
}

async fn measure(name: &str, database: Option<&str>) {
    let server = Arc::new(Server::start(database).await);
    let (cluster, observed) = (server.cluster().await, Observed::default());
    server.watch("deployment.scheduled", observed.clone()).await;
    let body = json!({
        "name": "bench", "image": "bench:1", "cluster_id": cluster, "resources": {"cpu": "10m"},
    });
    let began = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (server, observed, body) = (server.clone(), observed.clone(), body.clone());
        clients.spawn(async move {
            let mut times = Vec::with_capacity(EACH);
            for _ in 0..EACH {
                times.push(deploy(&server, &observed, &body).await);
            }
            times
        });
    }
    let mut times: Vec<Duration> = clients.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let rate = u32::try_from(times.len()).map_or(0.0, f64::from) / took.as_secs_f64();
    let (p50, p99, max) = (at(50), at(99), at(100));
    println!("| {name} | {rate:.0}/s | {p50:.1} ms | {p99:.1} ms | {max:.1} ms |");
}

/// Creates a deployment and waits until it is scheduled.
async fn deploy(server: &Server, observed: &Observed, body: &Value) -> Duration {
    let sent = Instant::now();
    let id = text(&server.post("/api/v1/deployments", body).await, "id");
    until_observed(observed, &id).await.duration_since(sent)
}
