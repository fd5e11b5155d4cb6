//! How fast deployments are asked for and placed, through the HTTP API of the real binary; see
//! `./bench`.
//!
//! 100 clients each ask for one deployment after the other. The time of one goes from sending the
//! request to the moment when the stream of events says that it is `scheduled`: by then it is durable
//! that it was asked for, and that it has its place. All times count, none is left out.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "a table for people is what it is for")]

#[path = "support/server.rs"]
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::{Seen, Server, text, until_seen};

const CLIENTS: usize = 100;
const EACH: usize = 30;

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

async fn measure(name: &str, database: Option<&str>) {
    let server = Arc::new(Server::start(database).await);
    let (cluster, seen) = (server.cluster().await, Seen::default());
    server.watch("deployment.scheduled", seen.clone()).await;
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
    until_seen(seen, &id).await.duration_since(sent)
}
