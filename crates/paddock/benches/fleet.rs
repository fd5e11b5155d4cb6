//! How fast instances get ready, through the HTTP API of the real binary with an agent that answers at
//! once; see `./bench`.
//!
//! The time of one goes from sending the request to the moment when the stream of events says that it
//! is `ready`. All times count, none is left out.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "a table for people is what it is for")]

#[path = "support/server.rs"]
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use server::{Seen, Server, text, until_seen};

const ONE_BY_ONE: usize = 300;
const AT_ONCE: usize = 10_000;
const CLIENTS: usize = 100;

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    println!("| asked for → ready, SQLite, durable | all ready after | p50 | p99 | longest |");
    println!("|---|---|---|---|---|");
    one_by_one().await;
    at_once().await;
}

async fn one_by_one() {
    let (server, seen) = ready_server().await;
    let (began, mut times) = (Instant::now(), Vec::new());
    for n in 0..ONE_BY_ONE {
        times.push(one(&server, &seen, n).await);
    }
    print(&format!("{ONE_BY_ONE}, one after the other"), began.elapsed(), times);
}

async fn at_once() {
    let (server, seen) = ready_server().await;
    let began = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (server, seen) = (server.clone(), seen.clone());
        clients.spawn(async move {
            let mut asked = Vec::new();
            for n in 0..AT_ONCE / CLIENTS {
                let sent = Instant::now();
                asked.push((ask(&server, client * AT_ONCE + n).await, sent));
            }
            let mut times = Vec::new();
            for (id, sent) in asked {
                times.push(until_seen(&seen, &id).await.duration_since(sent));
            }
            times
        });
    }
    let times = clients.join_all().await.into_iter().flatten().collect();
    print(&format!("{AT_ONCE} at once, {CLIENTS} clients"), began.elapsed(), times);
}

async fn ready_server() -> (Arc<Server>, Seen) {
    let (server, seen) = (Arc::new(Server::start(None).await), Seen::default());
    server.cluster().await;
    server.watch("instance.ready", seen.clone()).await;
    (server, seen)
}

async fn ask(server: &Server, n: usize) -> String {
    let body = json!({"name": format!("orders-{n}"), "kind": "kafka", "plan": "standard.x1"});
    text(&server.post("/api/v1/instances", &body).await, "id")
}

/// Asks for one, and waits until it is ready.
async fn one(server: &Server, seen: &Seen, n: usize) -> Duration {
    let sent = Instant::now();
    let id = ask(server, n).await;
    until_seen(seen, &id).await.duration_since(sent)
}

fn print(name: &str, took: Duration, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let (all, half, most, longest) = (took.as_secs_f64(), at(50), at(99), at(100));
    println!("| {name} | {all:.1} s | {half:.1} ms | {most:.1} ms | {longest:.1} ms |");
}
