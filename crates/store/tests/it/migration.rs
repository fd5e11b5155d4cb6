//! Migrations: an empty database, an up-to-date one, concurrent starts, a newer schema.

use std::sync::Arc;

use base::{SystemClock, task};
use model::event::Actor;
use store::Db;
use testing::{Engine, on_both_engines, rows};

use crate::support::{commit_note, database, notes, open, texts};

/// All migrations.
const MIGRATIONS: [&str; 14] = [
    "0001_foundation",
    "0002_instance",
    "0003_cluster_provider",
    "0004_pool",
    "0005_environment",
    "0006_resource_tried",
    "0007_operation",
    "0008_reason",
    "0009_encryption_key",
    "0010_fairness",
    "0011_organization_quota",
    "0012_invite_role",
    "0013_token",
    "0015_credential",
];

on_both_engines! {
    async fn empty_database_is_migrated(engine: Engine) {
        let database = database(engine).await;
        assert_eq!(applied(&database.db).await, MIGRATIONS);
        rows::tenant(&database.db, "acme").await;
    }

    async fn reopening_changes_nothing(engine: Engine) {
        let database = database(engine).await;
        commit_note(&database.db, "stays").await.unwrap();
        let again = database.replica(Arc::new(SystemClock)).await;
        assert_eq!(applied(&again).await, MIGRATIONS);
        assert_eq!(notes(&again).await, ["stays"]);
    }

    async fn eight_servers_migrate_an_empty_database_concurrently(engine: Engine) {
        let database = database(engine).await;
        let folder = tempfile::tempdir().unwrap();
        let url = match engine {
            Engine::Sqlite => format!("sqlite:{}", folder.path().join("new.db").display()),
            Engine::Postgres => {
                let wipe = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
                raw(&database.url()).await.batch_execute(wipe).await.unwrap();
                database.url()
            }
        };
        let opening = |n: usize| {
            let url = url.clone();
            task::spawn("replica", async move {
                let db = open(&url).await?;
                commit_note(&db, n).await.map(|()| db)
            })
        };
        let replicas: Vec<_> = (0..8).map(opening).collect();
        for replica in replicas {
            let db = replica.await.unwrap().unwrap();
            assert_eq!(applied(&db).await, MIGRATIONS);
        }
        assert_eq!(notes(&open(&url).await.unwrap()).await.len(), 8);
    }

    async fn database_of_a_newer_version_is_refused(engine: Engine) {
        let database = database(engine).await;
        let mut tx = database.db.begin(Actor::Server).await.unwrap();
        let newer = "INSERT INTO migration (name, applied_at) VALUES ('9999_future', 0)";
        tx.run(newer, &[]).await.unwrap();
        tx.commit().await.unwrap();
        let error = open(&database.url()).await.err().expect("it is refused").to_string();
        assert!(error.contains("newer Paddock") && error.contains("9999_future"), "{error}");
        assert_eq!(applied(&database.db).await, [&MIGRATIONS[..], &["9999_future"]].concat());
    }
}

#[tokio::test]
async fn invalid_url_is_reported() {
    for url in ["postgres://host:port/x", "nonsense"] {
        let error = open(url).await.err().expect("it is refused").to_string();
        assert!(error.contains("invalid database URL"), "{error}");
    }
}

#[tokio::test]
async fn unreachable_database_is_unavailable() {
    let error = open("postgres://nobody@127.0.0.1:1/x").await.err().expect("nothing listens there");
    assert!(matches!(error, store::Error::Unavailable(_)), "{error}");
}

async fn applied(db: &Db) -> Vec<String> {
    texts(db, "SELECT name FROM migration ORDER BY name").await
}

pub(crate) async fn raw(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    task::spawn("raw", connection);
    client
}

#[tokio::test]
async fn previous_release_writes_operation_state_through_views() {
    let database = database(Engine::Postgres).await;
    let old = raw(&database.url()).await;
    for sql in [
        "INSERT INTO cluster_secret (cluster_id, name, sealed) VALUES ('c', 'state', 'one') \
         ON CONFLICT (cluster_id, name) DO UPDATE SET sealed = excluded.sealed",
        "INSERT INTO resource_secret (resource_id, name, sealed) SELECT 'r', 'state', 'two' \
         ON CONFLICT (resource_id, name) DO UPDATE SET sealed = excluded.sealed",
        "INSERT INTO resource_secret (resource_id, name, sealed) SELECT 'r', 'state', 'three' \
         ON CONFLICT (resource_id, name) DO UPDATE SET sealed = excluded.sealed",
        "INSERT INTO resource_log (resource_id, number, at, line) VALUES ('r', 1, 2, 'said')",
        "DELETE FROM cluster_secret WHERE cluster_id = 'c'",
    ] {
        old.batch_execute(sql).await.unwrap();
    }
    let kept = "SELECT subject_id || ' ' || sealed FROM operation_secret";
    assert_eq!(texts(&database.db, kept).await, ["r three"]);
    assert_eq!(texts(&database.db, "SELECT line FROM operation_log").await, ["said"]);
}
