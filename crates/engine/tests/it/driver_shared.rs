//! Several drivers on one database: a key never runs twice at once, and none is missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::SystemClock;
use engine::Options;
use model::work::{Lane, Requeue};
use testing::{Database, on_both_engines};

use crate::probe::{Probe, start, until, until_idle, wake};

/// The lease of a driver that dies.
const SHORT: Duration = Duration::from_millis(900);

on_both_engines! {
    async fn key_never_runs_on_two_drivers_at_once(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let replica = database.replica(Arc::new(SystemClock)).await;
        let probe = Probe::that_takes(Duration::from_millis(3));
        let _first = start(&database.db, Options::default(), &probe);
        let _second = start(&replica, Options::default(), &probe);
        for round in 0..20 {
            let db = if round % 2 == 0 { &database.db } else { &replica };
            wake(db, Lane::Priority, 0..15).await;
        }
        until_idle(&database.db).await;
        assert_eq!(probe.record.overlaps(), Vec::<String>::new());
        assert!((0..15).all(|n| probe.record.runs(&n.to_string()) >= 1));
    }

    async fn lease_is_renewed_during_a_long_run(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let replica = database.replica(Arc::new(SystemClock)).await;
        let probe = Probe::that_takes(3 * SHORT);
        let options = Options { lease: SHORT, ..Options::default() };
        let _first = start(&database.db, options, &probe);
        let _second = start(&replica, options, &probe);
        wake(&database.db, Lane::Priority, ["a"]).await;
        until_idle(&database.db).await;
        assert_eq!((probe.record.runs("a"), probe.record.overlaps()), (1, vec![]));
    }

    async fn keys_of_a_dead_driver_run_elsewhere_after_the_lease(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let replica = database.replica(Arc::new(SystemClock)).await;
        let healed = Arc::new(AtomicBool::new(false));
        let probe = {
            let healed = healed.clone();
            Probe::new(move |_, _| {
                let healed = healed.load(Ordering::SeqCst);
                async move {
                    if !healed {
                        std::future::pending::<()>().await;
                    }
                    Ok(Requeue::OnChange)
                }
            })
        };
        let options = Options { lease: SHORT, ..Options::default() };
        let dying = start(&database.db, options, &probe);
        wake(&database.db, Lane::Priority, 0..5).await;
        until("all are running", async || probe.record.now() == 5).await;
        dying.task.abort();
        let _ = dying.task.await;
        until("none is running", async || probe.record.now() == 0).await;
        healed.store(true, Ordering::SeqCst);
        let _other = start(&replica, options, &probe);
        until_idle(&replica).await;
        assert!((0..5).all(|n| probe.record.runs(&n.to_string()) == 2));
        assert_eq!(probe.record.overlaps(), Vec::<String>::new());
    }
}
