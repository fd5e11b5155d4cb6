//! SQLite: one writer with group commit, and concurrent readers.
//!
//! Group commit: a transaction is a savepoint inside an outer transaction. When it is done it hands
//! the writer to the next in the queue instead of committing; the last of a group (empty queue, or
//! full group) commits the outer transaction, with one sync for all. Only then are the callers told
//! that their transactions are durable.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OpenFlags, ToSql};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, oneshot};

use super::value::{Row, Value};
use crate::{Error, Result};

/// Maximum number of transactions per commit.
const MAX_GROUP: usize = 256;
const READERS: usize = 8;
/// Page cache of the writer and of each reader, in KiB.
const WRITER_CACHE_KIB: i64 = 64 << 10;
const READER_CACHE_KIB: i64 = 8 << 10;
/// Size of the memory-mapped part of the file. A reader's cache is invalidated by every commit.
const MAPPED_BYTES: i64 = 1 << 30;
/// How long a transaction waits for the writer.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// When a commit counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When it survives a power failure.
    #[default]
    Full,
    /// When it survives a crash of the process.
    Normal,
}

pub(crate) struct Sqlite {
    writer: Arc<tokio::sync::Mutex<Writer>>,
    /// Number of transactions that wait for the writer.
    queued: AtomicUsize,
    committer: mpsc::Sender<OwnedMutexGuard<Writer>>,
    readers: Mutex<Vec<Connection>>,
    idle_readers: Arc<Semaphore>,
}

struct Writer {
    connection: Connection,
    /// Whether the outer transaction is open.
    is_open: bool,
    /// Callers that wait for the outer commit.
    group: Vec<oneshot::Sender<Result<()>>>,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Arc<Self>> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = match durability {
            Durability::Full => "FULL",
            Durability::Normal => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        prepare(&connection, WRITER_CACHE_KIB)?;
        let readers = (0..READERS).map(|_| open_reader(path)).collect::<Result<Vec<_>>>()?;
        let writer = Writer { connection, is_open: false, group: Vec::new() };
        Ok(Arc::new(Self {
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            queued: AtomicUsize::new(0),
            committer: start_committer()?,
            readers: Mutex::new(readers),
            idle_readers: Arc::new(Semaphore::new(READERS)),
        }))
    }

    pub(crate) async fn begin(self: &Arc<Self>) -> Result<Write> {
        let ticket = Ticket::draw(self);
        let turn = self.writer.clone().lock_owned();
        let mut writer = tokio::time::timeout(MAX_WAIT, turn)
            .await
            .map_err(|_| Error::Unavailable("too many queued writes".into()))?;
        ticket.redeem();
        if !writer.is_open {
            control(&writer.connection, "BEGIN IMMEDIATE")?;
            writer.is_open = true;
        }
        control(&writer.connection, "SAVEPOINT one")?;
        Ok(Write { writer: Some(writer), sqlite: self.clone() })
    }

    /// Moves the write-ahead log to the database file. Nothing may be written meanwhile.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        let writer = self.writer.lock().await;
        let to_file = |_: &rusqlite::Row<'_>| Ok(());
        writer.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], to_file)?;
        Ok(())
    }

    pub(crate) async fn read(self: &Arc<Self>) -> Result<Reader> {
        let permit = self.idle_readers.clone().acquire_owned().await.expect("is never closed");
        let reader = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Ok(Reader { connection: reader, sqlite: self.clone(), _permit: permit })
    }

    /// Passes the writer to the next in the queue, or commits if the queue is empty.
    fn pass_on(&self, writer: OwnedMutexGuard<Writer>) {
        if self.queued.load(Ordering::SeqCst) == 0 || writer.group.len() >= MAX_GROUP {
            return self.commit(writer);
        }
        drop(writer);
        // The next in the queue may have given up in this moment, and found the writer busy.
        self.commit_if_nobody_waits();
    }

    fn commit_if_nobody_waits(&self) {
        if self.queued.load(Ordering::SeqCst) == 0
            && let Ok(writer) = self.writer.clone().try_lock_owned()
        {
            self.commit(writer);
        }
    }

    fn commit(&self, writer: OwnedMutexGuard<Writer>) {
        if writer.is_open {
            // Fails only if the thread has ended; the waiters then get an error.
            let _ = self.committer.send(writer);
        }
    }
}

fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    prepare(&connection, READER_CACHE_KIB)?;
    Ok(connection)
}

fn prepare(connection: &Connection, cache_kib: i64) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(256);
    // Plans a statement once, not for each value of its limit.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "mmap_size", MAPPED_BYTES)?;
    // Makes `LIKE` case-sensitive, as in PostgreSQL.
    Ok(connection.pragma_update(None, "case_sensitive_like", true)?)
}

/// Runs a statement that begins or ends a transaction; cached, because there are many.
fn control(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.raw_execute()?;
    Ok(())
}

/// Starts the commit thread: commits wait for the disk, which must not block a task.
fn start_committer() -> Result<mpsc::Sender<OwnedMutexGuard<Writer>>> {
    let (sender, groups) = mpsc::channel::<OwnedMutexGuard<Writer>>();
    let run = move || {
        for mut writer in groups {
            let outcome = end_group(&writer.connection);
            writer.is_open = false;
            for waiter in writer.group.drain(..) {
                let outcome = outcome.as_ref().copied().map_err(|e| Error::Unavailable(e.clone()));
                // The caller may have gone.
                let _ = waiter.send(outcome);
            }
        }
    };
    let thread = std::thread::Builder::new().name("committer".into()).spawn(run);
    thread.map_err(|e| Error::Unavailable(format!("starting the commit thread failed: {e}")))?;
    Ok(sender)
}

fn end_group(connection: &Connection) -> Result<(), String> {
    connection.execute_batch("COMMIT").map_err(|error| {
        tracing::error!(%error, "commit failed, rolling back its transactions");
        if let Err(error) = connection.execute_batch("ROLLBACK") {
            tracing::error!(%error, "rollback failed");
        }
        error.to_string()
    })
}

/// A place in the queue for the writer; counts until it is redeemed or dropped.
struct Ticket<'a>(Option<&'a Sqlite>);

impl<'a> Ticket<'a> {
    fn draw(sqlite: &'a Sqlite) -> Self {
        sqlite.queued.fetch_add(1, Ordering::SeqCst);
        Self(Some(sqlite))
    }

    fn redeem(mut self) {
        if let Some(sqlite) = self.0.take() {
            sqlite.queued.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Some(sqlite) = self.0.take() {
            sqlite.queued.fetch_sub(1, Ordering::SeqCst);
            sqlite.commit_if_nobody_waits();
        }
    }
}

/// A transaction. Dropping it without a commit rolls it back.
pub(crate) struct Write {
    writer: Option<OwnedMutexGuard<Writer>>,
    sqlite: Arc<Sqlite>,
}

impl Write {
    pub(crate) fn connection(&self) -> &Connection {
        &self.writer.as_ref().expect("present until commit or drop").connection
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        control(self.connection(), "RELEASE one")?;
        let mut writer = self.writer.take().expect("present until commit or drop");
        let (sender, durable) = oneshot::channel();
        writer.group.push(sender);
        self.sqlite.pass_on(writer);
        durable.await.map_err(|_| Error::Unavailable("the writer stopped".into()))?
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            if let Err(error) = writer.connection.execute_batch("ROLLBACK TO one; RELEASE one") {
                tracing::error!(%error, "rollback failed");
            }
            self.sqlite.pass_on(writer);
        }
    }
}

/// A connection for reading; returns to the pool when dropped.
pub(crate) struct Reader {
    connection: Option<Connection>,
    sqlite: Arc<Sqlite>,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    pub(crate) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("as many permits as connections")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = self.sqlite.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.extend(self.connection.take());
    }
}

const NAMES: [&str; 24] = [
    "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15",
    "$16", "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24",
];

/// Binds by name: SQLite numbers `$2` by its first occurrence, PostgreSQL by its number.
fn bind<'c>(
    connection: &'c Connection,
    sql: &str,
    params: &[Value<'_>],
) -> Result<CachedStatement<'c>> {
    let mut statement = connection.prepare_cached(sql)?;
    for (i, value) in params.iter().enumerate() {
        let name =
            NAMES.get(i).map_or_else(|| format!("${}", i + 1).into(), |name| Cow::from(*name));
        let unused = || Error::Database(format!("parameter {name} is not used in: {sql}"));
        let index = statement.parameter_index(&name)?.ok_or_else(unused)?;
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(statement)
}

pub(crate) fn execute(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<u64> {
    let changed = bind(connection, sql, params)?.raw_execute()?;
    Ok(u64::try_from(changed).unwrap_or_default())
}

pub(crate) fn query(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<Vec<Row>> {
    let mut statement = bind(connection, sql, params)?;
    let width = statement.column_count();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..width).map(|i| owned(row.get_ref(i)?)).collect::<Result<Vec<_>>>()?;
        found.push(Row(values.into_iter()));
    }
    Ok(found)
}

fn owned(value: ValueRef<'_>) -> Result<Value<'static>> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(n) => Ok(Value::Int(n)),
        ValueRef::Text(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Ok(Value::Text(text.into())),
            Err(_) => Err(Error::Database("text is not UTF-8".into())),
        },
        other => Err(Error::Database(format!("unsupported column type {}", other.data_type()))),
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Value::Null => ToSqlOutput::Owned(rusqlite::types::Value::Null),
            Value::Int(n) => ToSqlOutput::Owned((*n).into()),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_is_planned_once() {
        let connection = Connection::open_in_memory().unwrap();
        prepare(&connection, READER_CACHE_KIB).unwrap();
        connection.execute_batch("CREATE TABLE one (id TEXT PRIMARY KEY, n BIGINT)").unwrap();
        let sql = "SELECT id FROM one WHERE id > $1 AND n = $2 ORDER BY id LIMIT $3";
        for n in 0..10 {
            let id = Value::Text(n.to_string().into());
            query(&connection, sql, &[id, Value::Int(n), Value::Int(n + 1)]).unwrap();
        }
        let statement = connection.prepare_cached(sql).unwrap();
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }
}
