//! What several tests here need.

use std::sync::Arc;
use std::time::Duration;

use base::{OsEntropy, SystemClock};
use model::event::Actor;
use store::idempotency::{self, Answer};
use store::{Db, Durability, Tx};
use testing::{Database, Engine, TestClock};

/// An empty database that shows the machine's time.
pub(crate) async fn database(engine: Engine) -> Database {
    Database::new(engine, Arc::new(SystemClock)).await
}

/// An empty database and its clock.
pub(crate) async fn database_with_clock(engine: Engine) -> (Database, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    (Database::new(engine, clock.clone()).await, clock)
}

/// Opens the database of that URL, as a server would.
pub(crate) async fn open(url: &str) -> store::Result<Db> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    match url.strip_prefix("sqlite:") {
        Some(path) => Db::open_sqlite(path.as_ref(), Durability::Normal, clock, entropy).await,
        None => Db::open_postgres(url, clock, entropy).await,
    }
}

/// The rows of a statement that gives one column of text.
pub(crate) async fn texts(db: &Db, sql: &str) -> Vec<String> {
    let rows = db.read().await.unwrap().all(sql, &[]).await.unwrap();
    rows.into_iter().map(|mut row| row.take().unwrap()).collect()
}

/// The smallest change there is.
pub(crate) async fn note(tx: &mut Tx, name: impl ToString) -> store::Result<()> {
    let answer = Answer { request: String::new(), status: 200, body: String::new() };
    idempotency::create(tx, "note", &name.to_string(), &answer).await.map(drop)
}

/// The smallest change there is, in a transaction of its own.
pub(crate) async fn commit_note(db: &Db, name: impl ToString) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    note(&mut tx, name).await?;
    tx.commit().await
}

/// The names of the changes that were made, sorted.
pub(crate) async fn notes(db: &Db) -> Vec<String> {
    texts(db, "SELECT key FROM idempotency WHERE owner = 'note' ORDER BY key").await
}

/// It must be done soon: longer than this means that something is stuck.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("is stuck")
}
