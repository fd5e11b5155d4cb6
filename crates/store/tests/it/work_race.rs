//! Concurrent claims and wake-ups: every key goes to one claimer, no wake-up is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base::{SystemClock, task};
use model::work::Lane;
use store::Db;
use testing::{Rng, on_both_engines};

use crate::support::database;
use crate::work::{claim, depth, finish, wake};

on_both_engines! {
    async fn key_is_never_claimed_twice(engine: Engine) {
        const KEYS: usize = 200;
        let database = database(engine).await;
        let replica = database.replica(Arc::new(SystemClock)).await;
        for n in 0..KEYS {
            wake(&database.db, Lane::Background, &n.to_string()).await;
        }
        let claimers: Vec<_> = (0..8)
            .map(|n| {
                let db = if n % 2 == 0 { database.db.clone() } else { replica.clone() };
                task::spawn("claimer", claim_all(db))
            })
            .collect();
        let mut claimed = BTreeSet::new();
        for claimer in claimers {
            for key in claimer.await.unwrap() {
                assert!(claimed.insert(key.clone()), "{key} was claimed twice");
            }
        }
        assert_eq!(claimed.len(), KEYS);
    }

    /// Each wake-up guarantees a run that begins after it; the runs record what they read.
    async fn wake_ups_are_not_lost_while_keys_run(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let world = Arc::new(World::default());
        let mut rng = Rng::from_env();
        let wakers: Vec<_> = (0..4)
            .map(|_| task::spawn("waker", change(db.clone(), world.clone(), rng.split())))
            .collect();
        let running = Arc::new(AtomicUsize::new(0));
        let runners: Vec<_> = (0..3)
            .map(|_| task::spawn("runner", reconcile(db.clone(), world.clone(), running.clone())))
            .collect();
        for waker in wakers {
            waker.await.unwrap();
        }
        running.store(1, Ordering::SeqCst);
        for runner in runners {
            runner.await.unwrap();
        }
        assert_eq!(depth(db).await, (0, 0));
        let (asked, seen) = (world.asked.lock().unwrap(), world.seen.lock().unwrap());
        assert_eq!(*asked, *seen, "the last change of a key was not reconciled");
    }
}

/// Claims in small batches until the queue is empty.
async fn claim_all(db: Db) -> Vec<String> {
    let mut keys = Vec::new();
    loop {
        let claims = claim(&db, Lane::Background, 7).await;
        if claims.is_empty() {
            return keys;
        }
        keys.extend(claims.into_iter().map(|claim| claim.key.key));
    }
}

/// The desired value of each key, and the value that its last run read.
#[derive(Default)]
struct World {
    asked: Mutex<BTreeMap<String, u64>>,
    seen: Mutex<BTreeMap<String, u64>>,
}

async fn change(db: Db, world: Arc<World>, mut rng: Rng) {
    for _ in 0..60 {
        let key = rng.below(5).to_string();
        *world.asked.lock().unwrap().entry(key.clone()).or_default() += 1;
        wake(&db, Lane::Background, &key).await;
    }
}

async fn reconcile(db: Db, world: Arc<World>, finished: Arc<AtomicUsize>) {
    loop {
        let last_round = finished.load(Ordering::SeqCst) == 1;
        let claims = claim(&db, Lane::Background, 2).await;
        if claims.is_empty() && last_round && depth(&db).await == (0, 0) {
            return;
        }
        for claim in claims {
            let key = claim.key.key.clone();
            let asked = world.asked.lock().unwrap()[&key];
            tokio::task::yield_now().await;
            world.seen.lock().unwrap().insert(key, asked);
            finish(&db, &claim).await;
        }
    }
}
