//! Concurrency limits of the driver, and slots reserved for the priority lane.

use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use engine::Options;
use model::work::Lane;
use testing::{Database, on_both_engines};

use crate::probe::{Probe, start, until, until_idle, wake};

fn options(concurrency: usize, reserved: usize) -> Options {
    Options { concurrency, reserved, ..Options::default() }
}

on_both_engines! {
    async fn concurrency_limit_is_never_exceeded(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::from_millis(20)));
        let _running = start(db, options(4, 1), &probe);
        wake(db, Lane::Priority, 0..40).await;
        until_idle(db).await;
        assert_eq!((probe.record.all(), probe.record.max_concurrency()), (40, 4));
    }

    async fn background_keys_leave_reserved_slots_free(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::from_millis(20)));
        let _running = start(db, options(4, 1), &probe);
        wake(db, Lane::Background, 0..30).await;
        until_idle(db).await;
        assert_eq!((probe.record.all(), probe.record.max_concurrency()), (30, 3));
    }

    async fn background_load_does_not_delay_a_priority_key(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let probe = Probe::new(|key, _| {
            let is_slow = key != "urgent";
            async move {
                tokio::time::sleep(Duration::from_secs(if is_slow { 30 } else { 0 })).await;
                Ok(model::work::Requeue::OnChange)
            }
        });
        let _running = start(db, options(4, 1), &probe);
        wake(db, Lane::Background, 0..50).await;
        until("a flood", async || probe.record.now() == 3).await;
        for n in 1..=5 {
            let asked = base::monotonic();
            wake(db, Lane::Priority, ["urgent"]).await;
            until("the urgent run", async || probe.record.runs("urgent") == n).await;
            assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
            until("its end", async || probe.record.now() == 3).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(probe.record.max_concurrency(), 4);
    }
}
