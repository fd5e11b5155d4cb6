//! A commit is heard at once, here and in other replicas.

use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use model::work::Lane;
use testing::{Engine, on_both_engines, rows};

use crate::support::database;
use crate::work::wake;

/// Well below the time after which everybody looks without being told.
const AT_ONCE: Duration = Duration::from_secs(3);

on_both_engines! {
    async fn work_is_heard_at_once(engine: Engine) {
        let database = database(engine).await;
        let mut signal = database.db.work_signal();
        signal.mark_unchanged();
        wake(&database.db, Lane::Background, "a").await;
        tokio::time::timeout(AT_ONCE, signal.changed()).await.expect("it is heard").unwrap();
    }

    async fn events_are_heard_at_once_and_can_be_read_then(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        // What the start of the database had to say.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut signal = db.event_signal();
        signal.mark_unchanged();
        rows::tenant(db, "acme").await;
        tokio::time::timeout(AT_ONCE, signal.changed()).await.expect("it is heard").unwrap();
        assert_eq!(store::event::last(&mut db.read().await.unwrap()).await.unwrap(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_replica_hears_of_work_and_events() {
    let database = database(Engine::Postgres).await;
    let replica = database.replica(Arc::new(SystemClock)).await;
    // Until it listens.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (mut work, mut events) = (replica.work_signal(), replica.event_signal());
    work.mark_unchanged();
    events.mark_unchanged();
    rows::tenant(&database.db, "acme").await;
    tokio::time::timeout(AT_ONCE, work.changed()).await.expect("it hears of work").unwrap();
    tokio::time::timeout(AT_ONCE, events.changed()).await.expect("it hears of events").unwrap();
    assert_eq!(store::event::last(&mut replica.read().await.unwrap()).await.unwrap(), 2);
}
