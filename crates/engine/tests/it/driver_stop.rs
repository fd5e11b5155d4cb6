//! Shutdown: running reconciliations finish, none start, nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use engine::Options;
use model::work::{Lane, Requeue};
use testing::{Database, on_both_engines};

use crate::probe::{Probe, depth, start, until, until_idle, wake};

on_both_engines! {
    async fn stop_waits_for_running_keys_and_records_them(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let (db, probe) = (&database.db, Probe::that_takes(Duration::from_millis(400)));
        let running = start(db, Options { concurrency: 3, reserved: 0, ..Options::default() }, &probe);
        wake(db, Lane::Priority, 0..10).await;
        until("some run", async || probe.record.now() == 3).await;
        running.stopper.stop();
        running.task.await.unwrap();
        assert_eq!((probe.record.all(), probe.record.now()), (3, 0), "a run started after the stop");
        assert_eq!(depth(db).await, (7, 0), "finished runs are recorded, the other keys stay queued");
    }

    async fn stop_waits_only_until_the_drain_timeout(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let db = &database.db;
        let probe = Probe::new(|_, nth| async move {
            if nth == 1 {
                std::future::pending::<()>().await;
            }
            Ok(Requeue::OnChange)
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
        until_idle(db).await;
        assert_eq!(probe.record.runs("a"), 2);
    }

    async fn idle_driver_stops_immediately(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let running = start(&database.db, Options::default(), &Probe::that_takes(Duration::ZERO));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let told = base::monotonic();
        running.stopper.stop();
        running.task.await.unwrap();
        assert!(told.elapsed() < Duration::from_secs(1));
    }
}
