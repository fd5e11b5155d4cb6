//! Reconciliations that fail, panic or hang: retried with backoff, without affecting other keys.

use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use engine::{Error, Options};
use model::event::Actor;
use model::work::{Key, Lane, Requeue};
use store::{Db, work};
use testing::{Database, TestClock, on_both_engines};

use crate::probe::{Probe, depth, start, until, until_idle, wake};

async fn error_of(db: &Db, key: &str) -> String {
    let sql = format!("SELECT COALESCE(error, '') FROM work WHERE key = '{key}'");
    let row = db.read().await.unwrap().first(&sql, &[]).await.unwrap();
    row.unwrap().take().unwrap()
}

/// Recorded failed attempts of a key.
async fn attempts_of(db: &Db, key: &str) -> i64 {
    let sql = format!("SELECT attempts FROM work WHERE key = '{key}'");
    let row = db.read().await.unwrap().first(&sql, &[]).await.unwrap();
    row.map_or(0, |mut row| row.take().unwrap())
}

on_both_engines! {
    async fn failures_are_retried_with_exponential_backoff(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let probe = Probe::new(|_, nth| async move {
            if nth <= 4 { Err(Error::Key("odd".into())) } else { Ok(Requeue::OnChange) }
        });
        let _running = start(db, Options::default(), &probe);
        wake(db, Lane::Priority, ["a"]).await;
        until("a failure", async || depth(db).await == (1, 1)).await;
        assert_eq!(error_of(db, "a").await, "invalid key \"odd\" for this worker");
        until_idle(db).await;
        let starts = probe.record.starts("a");
        let pauses: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // At least half of 100 ms, 200 ms, 400 ms, 800 ms; jitter at most doubles that.
        for (pause, least) in pauses.iter().zip([50, 100, 200, 400]) {
            assert!(*pause >= Duration::from_millis(least), "{pauses:?}");
        }
        assert_eq!(pauses.len(), 4);
    }

    async fn backoff_is_bounded(engine: Engine) {
        let clock = Arc::new(TestClock::default());
        let database = Database::new(engine, clock.clone()).await;
        let db = &database.db;
        let probe = Probe::new(|key, _| {
            let fails = key == "bad";
            async move { if fails { Err(Error::Panicked) } else { Ok(Requeue::OnChange) } }
        });
        // The clock is advanced during runs: no lease may expire by that.
        let lease = Duration::from_hours(24);
        let _running = start(db, Options { lease, ..Options::default() }, &probe);
        wake(db, Lane::Priority, ["bad"]).await;
        for nth in 1..=15 {
            // The attempt must be recorded: its backoff must start before the clock is advanced.
            until("one more attempt", async || attempts_of(db, "bad").await == nth).await;
            clock.advance(model::backoff::LONGEST);
            wake(db, Lane::Priority, ["other"]).await;
        }
        until("one more try", async || probe.record.runs("bad") == 16).await;
    }

    async fn panicking_and_hanging_keys_do_not_block_others(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let probe = Probe::new(|key, _| {
            let key = key.to_owned();
            async move {
                match key.as_str() {
                    "panics" => panic!("a bug of the worker (this message belongs to the test)"),
                    "hangs" => std::future::pending().await,
                    _ => Ok(Requeue::OnChange),
                }
            }
        });
        let options = Options {
            concurrency: 2,
            reserved: 0,
            timeout: Duration::from_millis(200),
            ..Options::default()
        };
        let _running = start(db, options, &probe);
        wake(db, Lane::Priority, ["hangs", "panics"]).await;
        wake(db, Lane::Background, 0..20).await;
        until("both tried again, the others done", async || {
            let bad = ["hangs", "panics"].iter().all(|key| probe.record.runs(key) >= 2);
            bad && (0..20).all(|n| probe.record.runs(&n.to_string()) == 1)
        })
        .await;
        until("both recorded", async || depth(db).await == (2, 2)).await;
        assert_eq!(error_of(db, "panics").await, "the worker panicked");
        assert!(error_of(db, "hangs").await.starts_with("timed out after"));
    }

    async fn key_without_a_worker_fails_alone(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::ZERO));
        let mut tx = db.begin(Actor::Server).await.unwrap();
        work::wake(&mut tx, Lane::Priority, Key::new("unknown", "x"));
        tx.commit().await.unwrap();
        let _running = start(db, Options::default(), &probe);
        wake(db, Lane::Priority, ["a"]).await;
        until("the run of the other key", async || probe.record.runs("a") == 1).await;
        until("a failure", async || depth(db).await == (1, 1)).await;
    }

    async fn failure_is_recorded_before_its_lease_expires(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let probe = Probe::new(|_, nth| async move {
            if nth == 1 { Err(Error::Panicked) } else { Ok(Requeue::OnChange) }
        });
        let _running = start(db, Options { lease: Duration::from_mins(10), ..Options::default() }, &probe);
        let began = base::monotonic();
        wake(db, Lane::Priority, ["a"]).await;
        until_idle(db).await;
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }
}
