//! Stopping: what runs comes to its end, nothing new begins, nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use engine::Options;
use model::work::{Lane, Next};
use testing::{Database, on_both_engines};

use crate::probe::{Probe, depth, start, until, until_at_rest, wake};

on_both_engines! {
    async fn a_stop_waits_for_what_runs_and_records_it(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::from_millis(400)));
        let running = start(db, Options { concurrency: 3, reserved: 0, ..Options::default() }, &probe);
        wake(db, Lane::Priority, 0..10).await;
        until("some run", async || probe.record.now() == 3).await;
        running.stopper.stop();
        running.task.await.unwrap();
        assert_eq!((probe.record.all(), probe.record.now()), (3, 0), "something new began");
        assert_eq!(depth(db).await, (7, 0), "what ran is done, the rest waits");
    }

    async fn a_stop_does_not_wait_for_ever(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let probe = Probe::new(|_, nth| async move {
            if nth == 1 {
                std::future::pending::<()>().await;
            }
            Ok(Next::Rest)
        });
        let drain = Duration::from_millis(300);
        let options = Options { drain, lease: Duration::from_secs(1), ..Options::default() };
        let running = start(db, options, &probe);
        wake(db, Lane::Priority, ["a"]).await;
        until("it runs", async || probe.record.now() == 1).await;
        let told = base::monotonic();
        running.stopper.stop();
        running.task.await.unwrap();
        assert!(told.elapsed() >= drain && told.elapsed() < Duration::from_secs(3));
        let _next = start(db, options, &probe);
        until_at_rest(db).await;
        assert_eq!(probe.record.runs("a"), 2);
    }

    async fn a_driver_without_work_stops_at_once(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let running = start(&database.db, Options::default(), &Probe::that_takes(Duration::ZERO));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let told = base::monotonic();
        running.stopper.stop();
        running.task.await.unwrap();
        assert!(told.elapsed() < Duration::from_secs(1));
    }
}
