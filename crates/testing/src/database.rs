//! Empty databases for tests, of either engine.

use std::sync::Arc;

use base::{Clock, OsEntropy, entropy};
use store::{Db, Durability};
use tempfile::TempDir;

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// SQLite, in a temporary file.
    Sqlite,
    /// PostgreSQL, on the server that `./test` started.
    Postgres,
}

/// A database for a test.
pub struct Database {
    /// The database, migrated.
    pub db: Db,
    location: Location,
}

enum Location {
    Sqlite(TempDir),
    Postgres(String),
}

impl Database {
    /// Creates a database.
    pub async fn new(engine: Engine, clock: Arc<dyn Clock>) -> Self {
        let location = Location::new(engine).await;
        let db = location.open(clock).await;
        Self { db, location }
    }

    /// Creates a database and opens it twice at the same time, while it is empty.
    pub async fn opened_twice(engine: Engine, clock: Arc<dyn Clock>) -> (Self, Db) {
        let location = Location::new(engine).await;
        let (db, other) = tokio::join!(location.open(clock.clone()), location.open(clock));
        (Self { db, location }, other)
    }

    /// Opens it again, as another server replica does.
    pub async fn replica(&self, clock: Arc<dyn Clock>) -> Db {
        self.location.open(clock).await
    }

    /// Its URL: the value of `--database-url`.
    pub fn url(&self) -> String {
        match &self.location {
            Location::Sqlite(dir) => format!("sqlite:{}", dir.path().join("test.db").display()),
            Location::Postgres(url) => url.clone(),
        }
    }
}

impl Location {
    async fn new(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => Location::Sqlite(tempfile::tempdir().expect("a temporary directory")),
            Engine::Postgres => Location::Postgres(create_postgres().await),
        }
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Db {
        let entropy = Arc::new(OsEntropy);
        let opened = match self {
            Location::Sqlite(dir) => {
                let path = dir.path().join("test.db");
                Db::open_sqlite(&path, Durability::Normal, clock, entropy).await
            }
            Location::Postgres(url) => Db::open_postgres(url, clock, entropy).await,
        };
        opened.expect("a fresh database opens")
    }
}

/// All that a database stores, as text: the files of SQLite, the rows of PostgreSQL.
///
/// For tests that look for values that must not be stored.
pub async fn stored_text(url: &str) -> String {
    match url.strip_prefix("sqlite:") {
        Some(file) => [file.to_owned(), format!("{file}-wal")]
            .map(|file| std::fs::read(file).unwrap_or_default())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat(),
        None => postgres_rows(url).await,
    }
}

async fn postgres_rows(url: &str) -> String {
    let client = connect(url).await;
    let tables = client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", &[]);
    let mut text = String::new();
    for table in tables.await.expect("the catalog is readable") {
        let table: &str = table.get(0);
        let sql = format!("SELECT coalesce(string_agg(t::text, chr(10)), '') FROM \"{table}\" t");
        let rows = client.query_one(&sql, &[]).await.expect("the table is readable");
        text.push_str(rows.get(0));
    }
    assert!(!text.is_empty(), "the database has rows");
    text
}

/// Creates a PostgreSQL database on the server that `./test` started, and returns its URL.
pub async fn create_postgres() -> String {
    let url = std::env::var("PADDOCK_TEST_POSTGRES_URL").expect(
        "PADDOCK_TEST_POSTGRES_URL is not set: run the tests with ./test, which starts PostgreSQL",
    );
    let client = connect(&url).await;
    let name = format!("test_{:016x}", entropy::random_u64(&OsEntropy));
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a new database");
    let (server, _) = url.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .expect("PostgreSQL accepts connections");
    base::task::spawn("test database", connection);
    client
}
