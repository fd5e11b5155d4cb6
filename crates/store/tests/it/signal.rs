//! Commits are signalled immediately, in this process and in others.

use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use model::work::Lane;
use testing::{Engine, on_both_engines, rows};

use crate::support::database;
use crate::work::wake;

/// Well below the polling interval.
const AT_ONCE: Duration = Duration::from_secs(3);

on_both_engines! {
    async fn work_is_signalled_immediately(engine: Engine) {
        let database = database(engine).await;
        let mut signal = database.db.work_signal();
        signal.mark_unchanged();
        wake(&database.db, Lane::Background, "a").await;
        tokio::time::timeout(AT_ONCE, signal.changed()).await.expect("signalled").unwrap();
    }

    async fn signalled_events_can_be_read(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        // The signals of the start.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut signal = db.event_signal();
        signal.mark_unchanged();
        rows::tenant(db, "acme").await;
        tokio::time::timeout(AT_ONCE, signal.changed()).await.expect("signalled").unwrap();
        assert_eq!(store::event::last(&mut db.read().await.unwrap()).await.unwrap(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_servers_are_notified_of_work_and_events() {
    let database = database(Engine::Postgres).await;
    let replica = database.replica(Arc::new(SystemClock)).await;
    // Until the listener is connected.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (mut work, mut events) = (replica.work_signal(), replica.event_signal());
    work.mark_unchanged();
    events.mark_unchanged();
    rows::tenant(&database.db, "acme").await;
    tokio::time::timeout(AT_ONCE, work.changed()).await.expect("work is signalled").unwrap();
    tokio::time::timeout(AT_ONCE, events.changed()).await.expect("events are signalled").unwrap();
    assert_eq!(store::event::last(&mut replica.read().await.unwrap()).await.unwrap(), 2);
}
