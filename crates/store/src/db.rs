//! The database: SQLite or PostgreSQL behind one small interface.
//!
//! `read` returns a read-only handle; `begin` starts a transaction with one timestamp and one
//! actor. After an error a transaction can only be dropped, on both engines.

mod any_certificate;
mod postgres;
mod select;
mod sqlite;
mod value;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use model::event::Actor;
use model::organization::quota::DefaultQuotas;
use model::work::{Key, Lane};
use model::{ClusterId, OrganizationId, Time};
use tokio::sync::watch;

use crate::{Error, Result, cluster, machine, migration, organization, organization_quota, work};
use base::entropy::Ids;
use base::{Clock, Entropy};

pub use select::Select;
pub(crate) use select::batches;
pub use sqlite::Durability;
pub use value::{Column, Param, Row, Value};
pub(crate) use value::{Json, json, params, readable};

/// A statement. The macro marks its text, so that a test finds it and prepares it on both engines.
macro_rules! sql {
    ($($part:tt)*) => { concat!($($part)*) };
}
pub(crate) use sql;

/// Signals that there may be something new. Carries no data: receivers read the database.
pub(crate) struct Signals {
    work: watch::Sender<u64>,
    events: watch::Sender<u64>,
}

impl Signals {
    fn raise(&self) {
        self.raise_work();
        self.raise_events();
    }

    fn raise_work(&self) {
        self.work.send_modify(|n| *n += 1);
    }

    fn raise_events(&self) {
        self.events.send_modify(|n| *n += 1);
    }
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    engine: Engine,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    ids: Ids,
    signals: Arc<Signals>,
    default_quotas: RwLock<Arc<DefaultQuotas>>,
}

enum Engine {
    Sqlite(Arc<sqlite::Sqlite>),
    Postgres(Arc<postgres::Postgres>),
}

impl Db {
    /// Opens a SQLite file; creates and migrates it if needed.
    pub async fn open_sqlite(
        path: &Path,
        durability: Durability,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self> {
        let engine = Engine::Sqlite(sqlite::Sqlite::open(path, durability)?);
        Self::open(engine, Signals::new(), clock, entropy).await
    }

    /// Opens a PostgreSQL database; migrates it if needed.
    pub async fn open_postgres(
        url: &str,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self> {
        let signals = Signals::new();
        let engine = Engine::Postgres(postgres::Postgres::open(url, &signals).await?);
        Self::open(engine, signals, clock, entropy).await
    }

    async fn open(
        engine: Engine,
        signals: Arc<Signals>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self> {
        let ids = Ids::new(&*entropy);
        let default_quotas = RwLock::default();
        let inner = Inner { engine, clock, entropy, ids, signals, default_quotas };
        let db = Self(Arc::new(inner));
        migration::run(&db).await?;
        Ok(db)
    }

    /// The engine: `sqlite` or `postgresql`.
    pub fn engine_name(&self) -> &'static str {
        match self.0.engine {
            Engine::Sqlite(_) => "sqlite",
            Engine::Postgres(_) => "postgresql",
        }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// A new id.
    pub fn id<T: From<model::Xid>>(&self) -> T {
        self.0.ids.next(self.now()).into()
    }

    /// The source of randomness.
    pub fn entropy(&self) -> &dyn Entropy {
        &*self.0.entropy
    }

    /// Quotas of organizations that have none of their own.
    pub fn default_quotas(&self) -> Arc<DefaultQuotas> {
        self.0.default_quotas.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the quotas of organizations that have none of their own.
    pub fn set_default_quotas(&self, quotas: DefaultQuotas) {
        let mut current = self.0.default_quotas.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(quotas);
    }

    /// A read-only handle. Each statement sees the data committed when it runs.
    pub async fn read(&self) -> Result<Read> {
        Ok(Read::new(match &self.0.engine {
            Engine::Sqlite(sqlite) => Connection::SqliteReader(sqlite.read().await?),
            Engine::Postgres(postgres) => Connection::PostgresReader(postgres.read().await?),
        }))
    }

    /// Begins a transaction of `actor`. Don't wait for anything else while it is open.
    pub async fn begin(&self, actor: Actor) -> Result<Tx> {
        let connection = match &self.0.engine {
            Engine::Sqlite(sqlite) => Connection::SqliteWriter(sqlite.begin().await?),
            Engine::Postgres(postgres) => Connection::PostgresWriter(postgres.begin().await?),
        };
        let (db, now) = (self.clone(), self.now());
        Ok(Tx {
            read: Read::new(connection),
            db,
            now,
            actor,
            counts: BTreeMap::new(),
            quota: organization_quota::Pending::default(),
            wakes: BTreeMap::new(),
            is_queue_changed: false,
        })
    }

    /// Changes when there may be new work, from this process or another.
    pub fn work_signal(&self) -> watch::Receiver<u64> {
        self.0.signals.work.subscribe()
    }

    /// Changes when there may be new events, from this process or another.
    pub fn event_signal(&self) -> watch::Receiver<u64> {
        self.0.signals.events.subscribe()
    }

    /// Prepares for shutdown: SQLite's write-ahead log is moved to the database file.
    pub async fn close(&self) -> Result<()> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.checkpoint().await,
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// Makes every committed event readable. Only needed for PostgreSQL.
    pub async fn number_events(&self) -> Result<()> {
        match &self.0.engine {
            Engine::Sqlite(_) => Ok(()),
            Engine::Postgres(postgres) => postgres.number_events().await.map(drop),
        }
    }
}

impl Signals {
    fn new() -> Arc<Self> {
        Arc::new(Self { work: watch::Sender::new(0), events: watch::Sender::new(0) })
    }
}

enum Connection {
    SqliteReader(sqlite::Reader),
    SqliteWriter(sqlite::Write),
    PostgresReader(Arc<deadpool_postgres::Object>),
    PostgresWriter(postgres::Write),
}

/// A read-only handle.
pub struct Read {
    connection: Connection,
    /// Whether a statement failed.
    failed: bool,
}

impl Read {
    fn new(connection: Connection) -> Self {
        Self { connection, failed: false }
    }

    /// For statements that differ between the engines.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.connection, Connection::PostgresReader(_) | Connection::PostgresWriter(_))
    }

    /// Returns all rows.
    pub async fn all(&mut self, sql: &str, params: &[Value<'_>]) -> Result<Vec<Row>> {
        let outcome = match &self.connection {
            Connection::SqliteReader(reader) => sqlite::query(reader.connection(), sql, params),
            Connection::SqliteWriter(writer) => sqlite::query(writer.connection(), sql, params),
            Connection::PostgresReader(client) => postgres::query(client, sql, params).await,
            Connection::PostgresWriter(writer) => {
                postgres::query(writer.client(), sql, params).await
            }
        };
        self.failed |= outcome.is_err();
        outcome
    }

    /// Returns the first row, if any.
    pub async fn first(&mut self, sql: &str, params: &[Value<'_>]) -> Result<Option<Row>> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }

    /// Returns the single number that the statement selects.
    pub async fn number(&mut self, sql: &str, params: &[Value<'_>]) -> Result<i64> {
        let row = self.first(sql, params).await?;
        row.ok_or_else(|| Error::Database("count returned no row".into()))?.take()
    }
}

/// A transaction with one timestamp and one actor. Dropping it rolls it back.
pub struct Tx {
    read: Read,
    db: Db,
    now: Time,
    actor: Actor,
    /// Counters to change at the commit, so that no lock is waited for while a counter is locked.
    counts: BTreeMap<Counter, i64>,
    /// Changes of quota usage to apply at the commit, for the same reason.
    quota: organization_quota::Pending,
    /// Keys to wake at the commit, with lane and time.
    wakes: BTreeMap<Key, (Lane, Time)>,
    is_queue_changed: bool,
}

impl Deref for Tx {
    type Target = Read;
    fn deref(&self) -> &Read {
        &self.read
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Read {
        &mut self.read
    }
}

impl Tx {
    /// The timestamp of the transaction.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The actor of the transaction.
    pub fn actor(&self) -> Actor {
        self.actor
    }

    /// A new id.
    pub fn id<T: From<model::Xid>>(&self) -> T {
        self.db.0.ids.next(self.now).into()
    }

    /// Runs a statement without result rows; returns the number of changed rows.
    pub async fn run(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64> {
        let outcome = match &self.read.connection {
            Connection::SqliteWriter(writer) => sqlite::execute(writer.connection(), sql, params),
            Connection::PostgresWriter(writer) => {
                postgres::execute(writer.client(), sql, params).await
            }
            _ => Err(Error::Database("transaction has no writer".into())),
        };
        self.read.failed |= outcome.is_err();
        outcome
    }

    /// Runs several statements; for migrations.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<()> {
        match &self.read.connection {
            Connection::SqliteWriter(writer) => Ok(writer.connection().execute_batch(sql)?),
            Connection::PostgresWriter(writer) => Ok(writer.client().batch_execute(sql).await?),
            _ => Err(Error::Database("transaction has no writer".into())),
        }
    }

    /// Acquires the lock with that name; released at the end of the transaction.
    pub async fn lock(&mut self, name: &str) -> Result<()> {
        // SQLite has only one writer.
        if let Connection::PostgresWriter(_) = &self.read.connection {
            self.read.all(sql_lock(), params![name]).await?;
        }
        Ok(())
    }

    /// Sets a savepoint for [`Tx::rollback_to`].
    pub(crate) async fn savepoint(&mut self) -> Result<Savepoint> {
        self.script("SAVEPOINT mark").await?;
        Ok(Savepoint(()))
    }

    /// Rolls back to the savepoint, which releases the locks acquired since. Wake-ups stay.
    pub(crate) async fn rollback_to(&mut self, _: Savepoint) -> Result<()> {
        self.script("ROLLBACK TO SAVEPOINT mark; RELEASE SAVEPOINT mark").await
    }

    /// Whether the engine has, and needs, `FOR UPDATE SKIP LOCKED`.
    pub(crate) fn skip_locked(&self) -> bool {
        matches!(self.read.connection, Connection::PostgresWriter(_))
    }

    /// Prevents the commit: only a part of an atomic change was done.
    pub(crate) fn poison(&mut self) {
        self.read.failed = true;
    }

    /// Wakes a key at the commit. Several wake-ups are merged to the earliest time.
    pub(crate) fn wake(&mut self, key: Key, lane: Lane, at: Time) {
        let wake = self.wakes.entry(key).or_insert((lane, at));
        *wake = (wake.0.min(lane), wake.1.min(at));
    }

    /// Changes a counter at the commit.
    pub(crate) fn count(&mut self, counter: Counter, change: i64) {
        *self.counts.entry(counter).or_default() += change;
    }

    /// Changes the counters now: no row may be locked after this.
    pub(crate) async fn flush_counts(&mut self) -> Result<()> {
        for (counter, change) in std::mem::take(&mut self.counts) {
            match counter {
                Counter::Cluster(id) => cluster::add_to_count(self, id, change).await?,
                Counter::Organization(id) => organization::add_to_count(self, id, change).await?,
                Counter::Machine(name, kind) => {
                    machine::add_to_used(self, &name, &kind, change).await?;
                }
            }
        }
        Ok(())
    }

    /// Changes of quota usage to apply at the commit.
    pub(crate) fn quota_pending(&mut self) -> &mut organization_quota::Pending {
        &mut self.quota
    }

    /// Quotas of organizations that have none of their own.
    pub(crate) fn default_quotas(&self) -> Arc<DefaultQuotas> {
        self.db.default_quotas()
    }

    /// Signals a change of the queue without a wake-up.
    pub(crate) fn mark_queue_changed(&mut self) {
        self.is_queue_changed = true;
    }

    /// Commits the transaction. When this returns, it is durable. Fails if a quota is exceeded.
    pub async fn commit(mut self) -> Result<()> {
        self.flush_counts().await?;
        organization_quota::flush(&mut self).await?;
        let wakes = std::mem::take(&mut self.wakes);
        let is_work_changed = self.is_queue_changed || !wakes.is_empty();
        for (key, (lane, at)) in wakes {
            work::write(&mut self, &key, lane, at).await?;
        }
        if self.read.failed {
            return Err(Error::Database("a failed transaction can't be committed".into()));
        }
        let signals = self.db.0.signals.clone();
        match self.read.connection {
            Connection::SqliteWriter(writer) => writer.commit().await?,
            Connection::PostgresWriter(writer) => writer.commit().await?,
            _ => return Err(Error::Database("transaction has no writer".into())),
        }
        if is_work_changed {
            signals.raise_work();
        }
        match &self.db.0.engine {
            Engine::Sqlite(_) => signals.raise_events(),
            Engine::Postgres(postgres) => postgres.announce(),
        }
        Ok(())
    }
}

/// Counters of deployments and of machines' used capacity, in the order in which their rows are
/// locked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counter {
    Cluster(ClusterId),
    Organization(OrganizationId),
    /// Name and resource type.
    Machine(String, String),
}

/// A savepoint.
pub(crate) struct Savepoint(());

/// PostgreSQL only, so it is not among the statements that both engines prepare.
fn sql_lock() -> &'static str {
    "SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, 0))) AS taken"
}
