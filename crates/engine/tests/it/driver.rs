//! The driver: one run per wake-up, and the next run as the worker requests.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, SystemClock};
use engine::{Error, Options};
use model::work::{Lane, Requeue};
use testing::{Database, TestClock, on_both_engines};

use crate::probe::{Probe, depth, start, until, until_idle, wake};

const HOUR: Duration = Duration::from_hours(1);

on_both_engines! {
    async fn key_runs_once_per_wake_up(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::ZERO));
        let _running = start(db, Options::default(), &probe);
        for n in 1..=3 {
            wake(db, Lane::Priority, ["a"]).await;
            until_idle(db).await;
            assert_eq!(probe.record.runs("a"), n);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(probe.record.all(), 3, "ran without a wake-up");
    }

    async fn key_woken_before_the_driver_started_runs(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::ZERO));
        wake(db, Lane::Background, 0..100).await;
        let _running = start(db, Options::default(), &probe);
        until_idle(db).await;
        assert_eq!(probe.record.all(), 100);
    }

    async fn wake_up_during_a_run_causes_another_run(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::from_millis(300)));
        let _running = start(db, Options::default(), &probe);
        wake(db, Lane::Priority, ["a"]).await;
        until("a run", async || probe.record.now() == 1).await;
        for _ in 0..5 {
            wake(db, Lane::Priority, ["a"]).await;
        }
        until_idle(db).await;
        assert_eq!((probe.record.runs("a"), probe.record.overlaps()), (2, vec![]));
    }

    async fn again_runs_immediately_but_after_other_keys(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let probe = Probe::new(|key, nth| {
            let again = key == "busy" && nth < 20;
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(if again { Requeue::Now } else { Requeue::OnChange })
            }
        });
        wake(db, Lane::Background, ["busy"]).await;
        wake(db, Lane::Background, 0..5).await;
        let _running = start(db, Options { concurrency: 1, reserved: 0, ..Options::default() }, &probe);
        until_idle(db).await;
        let busy = probe.record.starts("busy");
        assert_eq!(busy.len(), 20);
        for n in 0..5 {
            assert!(probe.record.starts(&n.to_string())[0] < busy[19], "{n} had to wait for all");
        }
    }

    async fn timer_fires_on_time_without_polling(engine: Engine) {
        let clock = Arc::new(TestClock::default());
        let database = Database::new(engine, clock.clone()).await;
        let (db, at) = (&database.db, clock.now() + HOUR);
        let probe = Probe::new(move |key, nth| {
            let next = if key == "timer" && nth == 1 { Requeue::At(at) } else { Requeue::OnChange };
            async move { Ok(next) }
        });
        // The clock is advanced during runs: no lease may expire by that.
        let lease = 24 * HOUR;
        let _running = start(db, Options { lease, ..Options::default() }, &probe);
        wake(db, Lane::Priority, ["timer"]).await;
        until("a first run", async || probe.record.runs("timer") == 1).await;
        clock.advance(HOUR / 2);
        wake(db, Lane::Priority, ["other"]).await;
        until("the run of the other key", async || probe.record.runs("other") == 1).await;
        assert_eq!((probe.record.runs("timer"), depth(db).await.1), (1, 0));
        clock.advance(HOUR / 2);
        // The driver sleeps in real time; any wake-up makes it read the clock.
        wake(db, Lane::Priority, ["other"]).await;
        until_idle(db).await;
        assert_eq!(probe.record.runs("timer"), 2);
    }

    async fn short_timer_fires_without_a_wake_up(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = database.db.clone();
        let clock = db.clone();
        let probe = Probe::new(move |_, nth| {
            let at = clock.now() + Duration::from_millis(200);
            async move { Ok(if nth == 1 { Requeue::At(at) } else { Requeue::OnChange }) }
        });
        let _running = start(&db, Options::default(), &probe);
        wake(&db, Lane::Priority, ["a"]).await;
        until_idle(&db).await;
        let starts = probe.record.starts("a");
        let pause = starts[1] - starts[0];
        assert!(pause >= Duration::from_millis(190) && pause < Duration::from_secs(3), "{pause:?}");
    }

    async fn wake_up_precedes_a_timer(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = database.db.clone();
        let at = db.now() + HOUR;
        let probe = Probe::new(move |_, nth| async move {
            if nth > 2 { Err(Error::Panicked) } else { Ok(Requeue::At(at)) }
        });
        let _running = start(&db, Options::default(), &probe);
        wake(&db, Lane::Priority, ["a"]).await;
        until("a first run", async || probe.record.now() == 0 && probe.record.runs("a") == 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        wake(&db, Lane::Priority, ["a"]).await;
        until("a second run", async || probe.record.runs("a") == 2).await;
    }
}
