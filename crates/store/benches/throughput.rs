//! Throughput of the store: deployments written and read per second; see `./bench`.
//!
//! "One by one" is the same code without concurrent writers, so that no two share a commit.
//! Machines differ: read the ratios.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and starts its own load"
)]
#![expect(clippy::print_stdout, reason = "a table for people is what it is for")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::{OsEntropy, SystemClock};
use model::{DeploymentId, OrganizationId, Resources};
use store::{Db, Durability, Scope, deployment};
use testing::rows;
use tokio::sync::Mutex;

/// Duration of each measurement.
const EACH: Duration = Duration::from_millis(1500);
const WRITERS: [usize; 3] = [1, 16, 64];

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    println!("{:<34}{:>10}{:>10}{:>10}{:>12}", "", "1", "16", "64", "64 : 1");
    let mut by_setup = Vec::new();
    for (name, durability) in [("FULL", Durability::Full), ("NORMAL", Durability::Normal)] {
        for grouped in [false, true] {
            let path = folder.path().join(format!("{name}-{grouped}.db"));
            let db = open_sqlite(&path, durability).await;
            let how = if grouped { "group commit" } else { "one by one" };
            by_setup.push(writes(&format!("SQLite {name}, {how}"), &db, grouped).await);
            if grouped && durability == Durability::Full {
                reads("SQLite, reads", &db).await;
            }
        }
    }
    if let Ok(url) = std::env::var("PADDOCK_BENCH_POSTGRES_URL") {
        let db = Db::open_postgres(&url, Arc::new(SystemClock), Arc::new(OsEntropy)).await;
        let db = db.expect("PostgreSQL answers");
        by_setup.push(writes("PostgreSQL", &db, true).await);
        reads("PostgreSQL, reads", &db).await;
    }
    println!();
    ratio("FULL: group commit to one by one, 64 writers", by_setup[1], by_setup[0]);
    ratio("NORMAL: group commit to one by one, 64 writers", by_setup[3], by_setup[2]);
    ratio("group commit: NORMAL to FULL, 64 writers", by_setup[3], by_setup[1]);
    if let Some(postgres) = by_setup.get(4) {
        ratio("SQLite FULL with group commit to PostgreSQL", by_setup[1], *postgres);
    }
}

async fn open_sqlite(path: &Path, durability: Durability) -> Db {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    Db::open_sqlite(path, durability, clock, entropy).await.expect("a fresh database opens")
}

/// Creates deployments, each in its own transaction. Returns the rate with the most writers.
async fn writes(name: &str, db: &Db, grouped: bool) -> f64 {
    let owner =
        rows::tenant(db, &format!("bench {}", base::entropy::random_u64(db.entropy()))).await;
    let owner = owner.organization_id;
    let turn = Arc::new(Mutex::new(()));
    let mut numbers = Vec::new();
    for writers in WRITERS {
        let rate = per_second(writers, || {
            let (db, turn) = (db.clone(), turn.clone());
            async move {
                let _alone = if grouped { None } else { Some(turn.lock_owned().await) };
                create(&db, owner).await;
            }
        });
        numbers.push(rate.await);
    }
    row(name, &numbers)
}

async fn create(db: &Db, owner: OrganizationId) {
    let resources = Resources::from([("cpu", 1), ("ram", 1)]);
    let new = rows::new_deployment(None, Some("registry/web:1"), resources, 0);
    rows::deployment(db, owner, &new).await;
}

/// Reads single deployments.
async fn reads(name: &str, db: &Db) {
    let ids = some_ids(db).await;
    let mut numbers = Vec::new();
    for readers in WRITERS {
        let next = Arc::new(AtomicU64::new(0));
        let rate = per_second(readers, || {
            let n = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).expect("an index");
            let (db, id) = (db.clone(), ids[n % ids.len()]);
            async move {
                let mut read = db.read().await.expect("a connection");
                deployment::get(&mut read, Scope::All, id).await.expect("a deployment");
            }
        });
        numbers.push(rate.await);
    }
    row(name, &numbers);
}

async fn some_ids(db: &Db) -> Vec<DeploymentId> {
    let (filter, page) = (deployment::Filter::default(), store::Page::first(1000));
    let mut read = db.read().await.expect("a connection");
    let found = deployment::list(&mut read, Scope::All, &filter, &page).await.expect("deployments");
    found.into_iter().map(|deployment| deployment.id).collect()
}

/// Calls per second with that concurrency.
async fn per_second<F>(at_once: usize, act: impl Fn() -> F) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    let mut done = 0_u32;
    for _ in 0..at_once {
        running.spawn(act());
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("it works");
        done += 1;
        if began.elapsed() < EACH {
            running.spawn(act());
        }
    }
    f64::from(done) / began.elapsed().as_secs_f64()
}

/// Prints a row of the table; returns its last number.
fn row(name: &str, numbers: &[f64]) -> f64 {
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    print!("{name:<34}");
    for number in numbers {
        print!("{number:>8.0}/s");
    }
    println!("{:>10.1} ×", last / first);
    last
}

fn ratio(what: &str, of: f64, to: f64) {
    println!("{what:<50}{:>8.1} ×", of / to);
}
