//! SQLite's group commit, observed through the number of commits in the write-ahead log.

use std::path::PathBuf;
use std::time::Duration;

use base::task;
use model::event::Actor;
use rusqlite::Connection;
use store::Db;
use testing::{Database, Engine};

use crate::support::{commit_note, database, note, notes, soon};

/// Number of transactions that wait for the first one.
const WAITING: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_transactions_share_a_commit() {
    let database = database(Engine::Sqlite).await;
    let log = Log::open(&database);
    let before = log.commits();
    let first = database.db.begin(Actor::Server).await.unwrap();
    let waiting: Vec<_> = (0..WAITING).map(|n| wait_and_note(&database.db, n)).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    soon(first.commit()).await.unwrap();
    for task in waiting {
        soon(task).await.unwrap();
    }
    let commits = log.commits() - before;
    assert_eq!(notes(&database.db).await.len(), WAITING);
    assert!(commits <= WAITING / 10, "{commits} commits for {WAITING} transactions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequential_transactions_commit_individually() {
    let database = database(Engine::Sqlite).await;
    let log = Log::open(&database);
    let before = log.commits();
    for n in 0..10 {
        commit_note(&database.db, n).await.unwrap();
    }
    assert_eq!(log.commits() - before, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollback_inside_a_group_affects_only_itself() {
    let database = database(Engine::Sqlite).await;
    let log = Log::open(&database);
    let before = log.commits();
    let mut first = database.db.begin(Actor::Server).await.unwrap();
    note(&mut first, "first").await.unwrap();
    let waiting: Vec<_> = (0..WAITING)
        .map(|n| {
            let db = database.db.clone();
            task::spawn("waiting", async move {
                let mut tx = db.begin(Actor::Server).await.unwrap();
                note(&mut tx, format!("{n:02}")).await.unwrap();
                match n % 3 {
                    0 => tx.commit().await.unwrap(),
                    1 => drop(tx),
                    _ => {
                        tx.run("UPDATE idempotency SET status = NULL", &[]).await.unwrap_err();
                        tx.commit().await.unwrap_err();
                    }
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    soon(first.commit()).await.unwrap();
    for task in waiting {
        soon(task).await.unwrap();
    }
    let expected = (0..WAITING).step_by(3).map(|n| format!("{n:02}"));
    let expected: Vec<_> = expected.chain(["first".to_owned()]).collect();
    assert_eq!(notes(&database.db).await, expected);
    let commits = log.commits() - before;
    assert!(commits <= WAITING / 10, "{commits} commits: not grouped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_returns_only_after_the_group_commit() {
    let database = database(Engine::Sqlite).await;
    let mut first = database.db.begin(Actor::Server).await.unwrap();
    note(&mut first, "first").await.unwrap();
    let (db, (tell, begun)) = (database.db.clone(), tokio::sync::oneshot::channel());
    let second = task::spawn("second", async move {
        let tx = db.begin(Actor::Server).await.unwrap();
        tell.send(()).unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        tx.commit().await.unwrap();
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let first = task::spawn("first", first.commit());
    begun.await.unwrap();
    // The second holds the writer: the first must not count as durable yet.
    assert!(!first.is_finished() && notes(&database.db).await.is_empty());
    soon(first).await.unwrap().unwrap();
    assert_eq!(notes(&database.db).await, ["first"]);
    second.await.unwrap();
}

fn wait_and_note(db: &Db, n: usize) -> tokio::task::JoinHandle<()> {
    let db = db.clone();
    task::spawn("waiting", async move { commit_note(&db, n).await.unwrap() })
}

/// The write-ahead log. A reader prevents its restart, so that every commit stays in it.
struct Log {
    path: PathBuf,
    _reader: Connection,
}

impl Log {
    fn open(database: &Database) -> Self {
        let url = database.url();
        let path = url.strip_prefix("sqlite:").unwrap();
        let reader = Connection::open(path).unwrap();
        reader.execute_batch("BEGIN; SELECT COUNT(*) FROM idempotency").unwrap();
        Self { path: format!("{path}-wal").into(), _reader: reader }
    }

    /// Number of commits in the log: a frame with the database size ends one.
    fn commits(&self) -> usize {
        let bytes = std::fs::read(&self.path).unwrap();
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let (page_size, salt) = (number(8), &bytes[16..24]);
        let frame_size = usize::try_from(page_size).unwrap() + 24;
        let frames = bytes[32..].chunks_exact(frame_size);
        let valid = frames.take_while(|frame| &frame[8..16] == salt);
        valid.filter(|frame| frame[4..8] != [0; 4]).count()
    }
}
