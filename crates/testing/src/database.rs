//! An empty database of either kind, gone with the test.

use std::sync::Arc;

use base::{Clock, OsEntropy, entropy};
use store::{Db, Durability};
use tempfile::TempDir;

/// Which kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file.
    Sqlite,
    /// The server that `./test` started.
    Postgres,
}

/// An empty database.
pub struct Database {
    /// The database, up to date.
    pub db: Db,
    place: Place,
}

enum Place {
    Sqlite(TempDir),
    Postgres(String),
}

impl Database {
    /// A new one.
    pub async fn new(engine: Engine, clock: Arc<dyn Clock>) -> Self {
        let place = Place::new(engine).await;
        let db = place.open(clock).await;
        Self { db, place }
    }

    /// A new one that two open at the same time, while it is still empty.
    pub async fn opened_twice(engine: Engine, clock: Arc<dyn Clock>) -> (Self, Db) {
        let place = Place::new(engine).await;
        let (db, other) = tokio::join!(place.open(clock.clone()), place.open(clock));
        (Self { db, place }, other)
    }

    /// Opens it once more, as another replica would.
    pub async fn replica(&self, clock: Arc<dyn Clock>) -> Db {
        self.place.open(clock).await
    }

    /// How a server process would be told about it: the value of `--database-url`.
    pub fn url(&self) -> String {
        match &self.place {
            Place::Sqlite(dir) => format!("sqlite:{}", dir.path().join("test.db").display()),
            Place::Postgres(url) => url.clone(),
        }
    }
}

impl Place {
    async fn new(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => Place::Sqlite(tempfile::tempdir().expect("a temporary directory")),
            Engine::Postgres => Place::Postgres(create_postgres().await),
        }
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Db {
        let entropy = Arc::new(OsEntropy);
        let opened = match self {
            Place::Sqlite(dir) => {
                let path = dir.path().join("test.db");
                Db::open_sqlite(&path, Durability::Normal, clock, entropy).await
            }
            Place::Postgres(url) => Db::open_postgres(url, clock, entropy).await,
        };
        opened.expect("a fresh database opens")
    }
}

/// Makes a database on the server that `./test` started, and returns its URL.
pub async fn create_postgres() -> String {
    let url = std::env::var("PADDOCK_TEST_POSTGRES_URL").expect(
        "PADDOCK_TEST_POSTGRES_URL is not set: run the tests with ./test, which starts PostgreSQL",
    );
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("PostgreSQL answers");
    base::task::spawn("test database", connection);
    let name = format!("test_{:016x}", entropy::noise(&OsEntropy));
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a new database");
    let (server, _) = url.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}
