//! A transaction that is abandoned while it waits for the writer does not affect others.

use std::time::Duration;

use base::task;
use model::event::Actor;
use store::Db;
use testing::{Rng, on_both_engines};

use crate::support::{commit_note, database, note, notes, soon};

on_both_engines! {
    async fn writer_continues_when_waiters_are_cancelled(engine: Engine) {
        let database = database(engine).await;
        let mut rng = Rng::from_env();
        for round in 0..4 {
            let tasks: Vec<_> = (0..150)
                .map(|n| {
                    let (db, rng) = (database.db.clone(), rng.split());
                    let name = format!("{round}-{n:03}");
                    (name.clone(), task::spawn("write_or_abandon", write_or_abandon(db, rng, name)))
                })
                .collect();
            let (mut durable, mut unknown) = (Vec::new(), Vec::new());
            for (name, task) in tasks {
                if rng.one_in(4) {
                    tokio::time::sleep(Duration::from_micros(rng.below(300))).await;
                    task.abort();
                }
                match soon(task).await {
                    Ok(End::Durable) => durable.push(name),
                    Ok(End::Forgotten) => {}
                    // The commit may have been in progress.
                    Ok(End::GaveUp) | Err(_) => unknown.push(name),
                }
            }
            let last = format!("{round}-last");
            tokio::time::timeout(Duration::from_secs(2), commit_note(&database.db, &last))
                .await
                .expect("the writer is stuck")
                .unwrap();
            check(&database.db, &format!("{round}-"), durable, &unknown, last).await;
        }
    }
}

/// Outcome of a transaction.
enum End {
    Durable,
    Forgotten,
    GaveUp,
}

/// Writes, then commits, rolls back, or is abandoned.
async fn write_or_abandon(db: Db, mut rng: Rng, name: String) -> End {
    let patience = Duration::from_micros(rng.below(20_000));
    let work = async {
        let mut tx = db.begin(Actor::Server).await.unwrap();
        note(&mut tx, &name).await.unwrap();
        if rng.one_in(2) {
            tokio::time::sleep(Duration::from_micros(rng.below(500))).await;
        }
        if rng.one_in(4) {
            return End::Forgotten;
        }
        tx.commit().await.unwrap();
        End::Durable
    };
    tokio::time::timeout(patience, work).await.unwrap_or(End::GaveUp)
}

async fn check(db: &Db, round: &str, durable: Vec<String>, unknown: &[String], last: String) {
    let found: Vec<_> = notes(db).await.into_iter().filter(|n| n.starts_with(round)).collect();
    for name in durable.iter().chain([&last]) {
        assert!(found.contains(name), "{name} was durable and is missing");
    }
    for name in found {
        let known = durable.contains(&name) || unknown.contains(&name) || name == last;
        assert!(known, "{name} was rolled back and exists");
    }
}
