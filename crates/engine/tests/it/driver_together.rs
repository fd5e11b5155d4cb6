//! Several drivers on one database: never the same key at once, and none is missed when one dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::SystemClock;
use engine::Options;
use model::work::{Lane, Next};
use testing::{Database, on_both_engines};

use crate::probe::{Probe, start, until, until_at_rest, wake};

/// The lease of a driver that is about to die.
const SHORT: Duration = Duration::from_millis(900);

on_both_engines! {
    async fn two_drivers_never_run_the_same_key_at_once(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let replica = database.replica(Arc::new(SystemClock)).await;
        let probe = Probe::that_takes(Duration::from_millis(3));
        let _first = start(&database.db, Options::default(), &probe);
        let _second = start(&replica, Options::default(), &probe);
        for round in 0..20 {
            let db = if round % 2 == 0 { &database.db } else { &replica };
            wake(db, Lane::Priority, 0..15).await;
        }
        until_at_rest(&database.db).await;
        assert_eq!(probe.record.overlaps(), Vec::<String>::new());
        assert!((0..15).all(|n| probe.record.runs(&n.to_string()) >= 1));
    }

    async fn a_step_that_takes_longer_than_its_lease_keeps_it(engine: Engine) {
        let database = Database::new(engine, Arc::new(SystemClock)).await;
        let replica = database.replica(Arc::new(SystemClock)).await;
        let probe = Probe::that_takes(3 * SHORT);
        let options = Options { lease: SHORT, ..Options::default() };
        let _first = start(&database.db, options, &probe);
        let _second = start(&replica, options, &probe);
        wake(&database.db, Lane::Priority, ["a"]).await;
        until_at_rest(&database.db).await;
        assert_eq!((probe.record.runs("a"), probe.record.overlaps()), (1, vec![]));
    }

    async fn when_a_driver_dies_another_takes_over_after_the_lease(engine: Engine) {
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
                    Ok(Next::Rest)
                }
            })
        };
        let options = Options { lease: SHORT, ..Options::default() };
        let dying = start(&database.db, options, &probe);
        wake(&database.db, Lane::Priority, 0..5).await;
        until("all are being looked at", async || probe.record.now() == 5).await;
        dying.task.abort();
        let _ = dying.task.await;
        until("none is any more", async || probe.record.now() == 0).await;
        healed.store(true, Ordering::SeqCst);
        let _other = start(&replica, options, &probe);
        until_at_rest(&replica).await;
        assert!((0..5).all(|n| probe.record.runs(&n.to_string()) == 2));
        assert_eq!(probe.record.overlaps(), Vec::<String>::new());
    }
}
