//! Those who wait for their turn may give up at any moment; the others must not notice.

use std::time::Duration;

use base::task;
use model::event::Actor;
use store::Db;
use testing::{Dice, on_both_engines};

use crate::support::{commit_note, database, note, notes, soon};

on_both_engines! {
    async fn the_writer_goes_on_when_waiters_give_up(engine: Engine) {
        let database = database(engine).await;
        let mut dice = Dice::roll();
        for round in 0..4 {
            let tasks: Vec<_> = (0..150)
                .map(|n| {
                    let (db, dice) = (database.db.clone(), dice.split());
                    let name = format!("{round}-{n:03}");
                    (name.clone(), task::spawn("capricious", capricious(db, dice, name)))
                })
                .collect();
            let (mut told, mut unknown) = (Vec::new(), Vec::new());
            for (name, task) in tasks {
                if dice.one_in(4) {
                    tokio::time::sleep(Duration::from_micros(dice.below(300))).await;
                    task.abort();
                }
                match soon(task).await {
                    Ok(End::Durable) => told.push(name),
                    Ok(End::Forgotten) => {}
                    // It may have been on its way to the disk.
                    Ok(End::GaveUp) | Err(_) => unknown.push(name),
                }
            }
            let last = format!("{round}-last");
            tokio::time::timeout(Duration::from_secs(2), commit_note(&database.db, &last))
                .await
                .expect("the writer is stuck")
                .unwrap();
            check(&database.db, &format!("{round}-"), told, &unknown, last).await;
        }
    }
}

/// How it ended.
enum End {
    Durable,
    Forgotten,
    GaveUp,
}

/// Writes and then commits, forgets it, or loses patience.
async fn capricious(db: Db, mut dice: Dice, name: String) -> End {
    let patience = Duration::from_micros(dice.below(20_000));
    let work = async {
        let mut tx = db.begin(Actor::Server).await.unwrap();
        note(&mut tx, &name).await.unwrap();
        if dice.one_in(2) {
            tokio::time::sleep(Duration::from_micros(dice.below(500))).await;
        }
        if dice.one_in(4) {
            return End::Forgotten;
        }
        tx.commit().await.unwrap();
        End::Durable
    };
    tokio::time::timeout(patience, work).await.unwrap_or(End::GaveUp)
}

async fn check(db: &Db, round: &str, told: Vec<String>, unknown: &[String], last: String) {
    let there: Vec<_> = notes(db).await.into_iter().filter(|n| n.starts_with(round)).collect();
    for name in told.iter().chain([&last]) {
        assert!(there.contains(name), "{name} was durable and is gone");
    }
    for name in there {
        let known = told.contains(&name) || unknown.contains(&name) || name == last;
        assert!(known, "{name} was rolled back and is there");
    }
}
