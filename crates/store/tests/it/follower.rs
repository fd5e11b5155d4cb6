//! A follower of the log sees every event exactly once and in order, despite concurrent writers.
//!
//! The classic mistake: transactions get their numbers in one order and commit in another, and a
//! reader that is past the higher number never sees the lower one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::task;
use model::event::{Actor, Event};
use model::{ClusterId, Resources};
use store::{Db, Scope, cluster, event};
use testing::{Rng, on_both_engines, rows};
use tokio::sync::watch;

use crate::support::database;

const WRITERS: usize = 8;
const CHANGES: usize = 40;

on_both_engines! {
    async fn follower_sees_every_event_once_and_in_order(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let mut subjects = Vec::new();
        for _ in 0..3 {
            subjects.push(rows::cluster(db, None, Resources::from([("cpu", 1)])).await.id);
        }
        let (done, is_done) = watch::channel(false);
        let follower = task::spawn("follower", follow(db.clone(), is_done));
        let mut rng = Rng::from_env();
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| task::spawn("writer", write(db.clone(), rng.split(), n, subjects.clone())))
            .collect();
        let mut committed = BTreeSet::new();
        for writer in writers {
            committed.extend(writer.await.unwrap());
        }
        db.number_events().await.unwrap();
        done.send(true).unwrap();
        check(&follower.await.unwrap(), committed);
    }
}

/// Writes with random pauses, and rolls some back. Returns what was committed.
async fn write(db: Db, mut rng: Rng, writer: usize, of: Vec<ClusterId>) -> Vec<String> {
    let mut committed = Vec::new();
    for change in 0..CHANGES {
        let name = format!("{writer}/{change}");
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let subject = *rng.pick(&of).unwrap();
        cluster::set_metadata(&mut tx, subject, Some(&name), None).await.unwrap();
        tokio::time::sleep(Duration::from_micros(rng.below(2_000))).await;
        if rng.one_in(5) {
            drop(tx);
        } else {
            tx.commit().await.unwrap();
            committed.push(name);
        }
        tokio::time::sleep(Duration::from_micros(rng.below(2_000))).await;
    }
    committed
}

/// Reads on in small pages until the writers are done.
async fn follow(db: Db, is_done: watch::Receiver<bool>) -> Vec<Event> {
    let mut signal = db.event_signal();
    let mut seen: Vec<Event> = Vec::new();
    loop {
        let was_done = *is_done.borrow();
        let after = seen.last().map_or(0, |event| event.seq);
        let mut read = db.read().await.unwrap();
        let part = event::list(&mut read, Scope::All, &event::Filter::default(), after, 7).await;
        let part = part.unwrap();
        drop(read);
        if part.is_empty() && was_done {
            return seen;
        }
        if part.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(50), signal.changed()).await;
        }
        seen.extend(part);
    }
}

fn check(seen: &[Event], mut committed: BTreeSet<String>) {
    let mut generations: BTreeMap<&str, i64> = BTreeMap::new();
    for (event, place) in seen.iter().zip(1..) {
        assert_eq!(event.seq, place, "gap or duplicate");
        let generation = event.data["generation"].as_i64().unwrap();
        let before = generations.insert(&event.subject, generation).unwrap_or(0);
        assert_eq!(generation, before + 1, "out of order: {event:?}");
        let name = event.data["name"].as_str().unwrap();
        let expected = event.change == "cluster.created" || committed.remove(name);
        assert!(expected, "{name} was rolled back, or is a duplicate");
    }
    assert!(committed.is_empty(), "missing: {committed:?}");
}
