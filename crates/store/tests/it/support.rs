//! Fixtures.

use std::sync::Arc;
use std::time::Duration;

use base::{OsEntropy, SystemClock};
use model::event::Actor;
use store::idempotency::{self, StoredResponse};
use store::{Db, Durability, Tx};
use testing::{Database, Engine, TestClock};

/// An empty database with the system clock.
pub(crate) async fn database(engine: Engine) -> Database {
    Database::new(engine, Arc::new(SystemClock)).await
}

/// An empty database with a test clock.
pub(crate) async fn database_with_clock(engine: Engine) -> (Database, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    (Database::new(engine, clock.clone()).await, clock)
}

/// Opens the database at that URL like a server.
pub(crate) async fn open(url: &str) -> store::Result<Db> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    match url.strip_prefix("sqlite:") {
        Some(path) => Db::open_sqlite(path.as_ref(), Durability::Normal, clock, entropy).await,
        None => Db::open_postgres(url, clock, entropy).await,
    }
}

/// The rows of a statement with one text column.
pub(crate) async fn texts(db: &Db, sql: &str) -> Vec<String> {
    let rows = db.read().await.unwrap().all(sql, &[]).await.unwrap();
    rows.into_iter().map(|mut row| row.take().unwrap()).collect()
}

/// A minimal change.
pub(crate) async fn note(tx: &mut Tx, name: impl ToString) -> store::Result<()> {
    let answer = StoredResponse { request: String::new(), status: 200, body: String::new() };
    idempotency::create(tx, "note", &name.to_string(), &answer).await.map(drop)
}

/// A minimal change in its own transaction.
pub(crate) async fn commit_note(db: &Db, name: impl ToString) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    note(&mut tx, name).await?;
    tx.commit().await
}

/// The names of the committed changes, sorted.
pub(crate) async fn notes(db: &Db) -> Vec<String> {
    texts(db, "SELECT key FROM idempotency WHERE owner = 'note' ORDER BY key").await
}

/// Fails if the future takes more than ten seconds.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("timed out")
}
