//! The database: SQLite or PostgreSQL behind one small face.
//!
//! `read` gives something that can only look; `begin` gives a transaction, which happens at one
//! instant and has one actor. After an error a transaction can only be dropped, on both engines.

mod any_certificate;
mod postgres;
mod select;
mod sqlite;
mod value;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use model::event::Actor;
use model::work::{Key, Lane};
use model::{ClusterId, OrganizationId, Time};
use tokio::sync::watch;

use crate::{Error, Result, cluster, migration, organization, work};
use base::entropy::Ids;
use base::{Clock, Entropy};

pub use select::Select;
pub(crate) use select::batches;
pub use sqlite::Durability;
pub use value::{Column, Param, Row, Value};
pub(crate) use value::{Json, json, params, readable};

/// A statement. Marks its text, so that a test finds it and prepares it on both engines.
macro_rules! sql {
    ($($part:tt)*) => { concat!($($part)*) };
}
pub(crate) use sql;

/// Tells whoever waits that there may be something new. Carries no facts: look for yourself.
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
}

enum Engine {
    Sqlite(Arc<sqlite::Sqlite>),
    Postgres(Arc<postgres::Postgres>),
}

impl Db {
    /// Opens a SQLite file, made and brought up to date if need be.
    pub async fn open_sqlite(
        path: &Path,
        durability: Durability,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self> {
        let engine = Engine::Sqlite(sqlite::Sqlite::open(path, durability)?);
        Self::open(engine, Signals::new(), clock, entropy).await
    }

    /// Opens a PostgreSQL database and brings it up to date if need be.
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
        let db = Self(Arc::new(Inner { engine, clock, entropy, ids, signals }));
        migration::run(&db).await?;
        Ok(db)
    }

    /// What kind of database it is: `sqlite` or `postgresql`.
    pub fn engine_name(&self) -> &'static str {
        match self.0.engine {
            Engine::Sqlite(_) => "sqlite",
            Engine::Postgres(_) => "postgresql",
        }
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// A new id.
    pub fn id<T: From<model::Xid>>(&self) -> T {
        self.0.ids.next(self.now()).into()
    }

    /// Randomness.
    pub fn entropy(&self) -> &dyn Entropy {
        &*self.0.entropy
    }

    /// Something to look with. Each statement sees what is committed at its time.
    pub async fn read(&self) -> Result<Read> {
        Ok(Read::new(match &self.0.engine {
            Engine::Sqlite(sqlite) => Connection::SqliteReader(sqlite.read().await?),
            Engine::Postgres(postgres) => Connection::PostgresReader(postgres.read().await?),
        }))
    }

    /// A transaction in which `actor` changes things. Don't wait for anything else while it is open.
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
            wakes: BTreeMap::new(),
            stirred: false,
        })
    }

    /// Changes whenever there may be new work, from this process or another.
    pub fn work_signal(&self) -> watch::Receiver<u64> {
        self.0.signals.work.subscribe()
    }

    /// Changes whenever there may be new events, from this process or another.
    pub fn event_signal(&self) -> watch::Receiver<u64> {
        self.0.signals.events.subscribe()
    }

    /// Leaves the database tidy before the process ends: what SQLite kept in its log goes to its file.
    pub async fn close(&self) -> Result<()> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.checkpoint().await,
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// Makes sure that every committed event can be read. Only PostgreSQL has something to do here.
    pub async fn settle_events(&self) -> Result<()> {
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

/// Something to look with.
pub struct Read {
    connection: Connection,
    /// Did a statement fail?
    failed: bool,
}

impl Read {
    fn new(connection: Connection) -> Self {
        Self { connection, failed: false }
    }

    /// Where the engines speak differently.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.connection, Connection::PostgresReader(_) | Connection::PostgresWriter(_))
    }

    /// All rows.
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

    /// The first row, if there is one.
    pub async fn first(&mut self, sql: &str, params: &[Value<'_>]) -> Result<Option<Row>> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }

    /// The one number that the statement gives.
    pub async fn number(&mut self, sql: &str, params: &[Value<'_>]) -> Result<i64> {
        let row = self.first(sql, params).await?;
        row.ok_or_else(|| Error::Broken("a count without a row".into()))?.take()
    }
}

/// A transaction: looks and changes, at one instant, by one actor. Dropped, it never was.
pub struct Tx {
    read: Read,
    db: Db,
    now: Time,
    actor: Actor,
    /// What is counted at the end, so that nobody's row is waited for while a counter is held.
    counts: BTreeMap<Counter, i64>,
    /// Who is to be woken, when, by whom it is waited for.
    wakes: BTreeMap<Key, (Lane, Time)>,
    stirred: bool,
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
    /// The instant at which all of this happens.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Who does it.
    pub fn actor(&self) -> Actor {
        self.actor
    }

    /// A new id.
    pub fn id<T: From<model::Xid>>(&self) -> T {
        self.db.0.ids.next(self.now).into()
    }

    /// Runs a statement that gives no rows; how many rows it changed.
    pub async fn run(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64> {
        let outcome = match &self.read.connection {
            Connection::SqliteWriter(writer) => sqlite::execute(writer.connection(), sql, params),
            Connection::PostgresWriter(writer) => {
                postgres::execute(writer.client(), sql, params).await
            }
            _ => Err(Error::Broken("a transaction without a writer".into())),
        };
        self.read.failed |= outcome.is_err();
        outcome
    }

    /// Runs several statements at once; for migrations.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<()> {
        match &self.read.connection {
            Connection::SqliteWriter(writer) => Ok(writer.connection().execute_batch(sql)?),
            Connection::PostgresWriter(writer) => Ok(writer.client().batch_execute(sql).await?),
            _ => Err(Error::Broken("a transaction without a writer".into())),
        }
    }

    /// Waits until nobody else holds the lock of that name; it is given back at the end.
    pub async fn lock(&mut self, name: &str) -> Result<()> {
        // In SQLite there is only one writer anyway.
        if let Connection::PostgresWriter(_) = &self.read.connection {
            self.read.all(sql_lock(), params![name]).await?;
        }
        Ok(())
    }

    /// A point to which [`Tx::return_to`] can go back.
    pub(crate) async fn mark(&mut self) -> Result<Mark> {
        self.script("SAVEPOINT mark").await?;
        Ok(Mark(()))
    }

    /// Undoes what was written since the mark, and lets go of the locks taken since. Who was to be
    /// woken still is.
    pub(crate) async fn return_to(&mut self, _: Mark) -> Result<()> {
        self.script("ROLLBACK TO SAVEPOINT mark; RELEASE SAVEPOINT mark").await
    }

    /// `FOR UPDATE SKIP LOCKED` where it exists, and where it is needed.
    pub(crate) fn skip_locked(&self) -> bool {
        matches!(self.read.connection, Connection::PostgresWriter(_))
    }

    /// Sees to it that this can't be committed: a part of what belongs together was done.
    pub(crate) fn poison(&mut self) {
        self.read.failed = true;
    }

    /// Has a worker look at a key, from the commit on. Twice is once, at the earlier time.
    pub(crate) fn wake(&mut self, key: Key, lane: Lane, at: Time) {
        let wish = self.wakes.entry(key).or_insert((lane, at));
        *wish = (wish.0.min(lane), wish.1.min(at));
    }

    /// Counts so many deployments more or fewer, at the commit.
    pub(crate) fn count(&mut self, counter: Counter, change: i64) {
        *self.counts.entry(counter).or_default() += change;
    }

    /// Changes the counters now: nobody's row may be waited for after this.
    pub(crate) async fn settle_counts(&mut self) -> Result<()> {
        for (counter, change) in std::mem::take(&mut self.counts) {
            match counter {
                Counter::Cluster(id) => cluster::add_to_count(self, id, change).await?,
                Counter::Organization(id) => organization::add_to_count(self, id, change).await?,
            }
        }
        Ok(())
    }

    /// Notes that the queue changed, though nobody was woken.
    pub(crate) fn stir(&mut self) {
        self.stirred = true;
    }

    /// Makes it so. When this returns, it is durable.
    pub async fn commit(mut self) -> Result<()> {
        self.settle_counts().await?;
        let wakes = std::mem::take(&mut self.wakes);
        let is_news = self.stirred || !wakes.is_empty();
        for (key, (lane, at)) in wakes {
            work::write(&mut self, &key, lane, at).await?;
        }
        if self.read.failed {
            return Err(Error::Broken("a transaction that failed can't be committed".into()));
        }
        let signals = self.db.0.signals.clone();
        match self.read.connection {
            Connection::SqliteWriter(writer) => writer.commit().await?,
            Connection::PostgresWriter(writer) => writer.commit().await?,
            _ => return Err(Error::Broken("a transaction without a writer".into())),
        }
        if is_news {
            signals.raise_work();
        }
        match &self.db.0.engine {
            Engine::Sqlite(_) => signals.raise_events(),
            Engine::Postgres(postgres) => postgres.announce(),
        }
        Ok(())
    }
}

/// What counts deployments, in the order in which their rows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counter {
    Cluster(ClusterId),
    Organization(OrganizationId),
}

/// A point in a transaction.
pub(crate) struct Mark(());

/// Only PostgreSQL knows it, so it is not among the statements that both engines prepare.
fn sql_lock() -> &'static str {
    "SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, 0))) AS taken"
}
