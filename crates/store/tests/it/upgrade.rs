//! Upgrade of a database filled by an earlier release: every row stays readable and usable.

use std::fmt::Write as _;
use std::path::Path;

use model::event::Actor;
use model::reason::StatusReason as _;
use store::{
    Db, Page, Scope, cluster, deployment, environment, event, instance, organization,
    organization_quota, resource,
};
use testing::{Engine, on_both_engines};

use crate::migration::raw;
use crate::support::{database, open};

/// The schema of the previous release, as its migrations in order.
const SCHEMA: [(&str, &str); 6] = [
    ("0001_foundation", include_str!("../../migrations/0001_foundation.sql")),
    ("0002_instance", include_str!("../../migrations/0002_instance.sql")),
    ("0003_cluster_provider", include_str!("../../migrations/0003_cluster_provider.sql")),
    ("0004_pool", include_str!("../../migrations/0004_pool.sql")),
    ("0005_environment", include_str!("../../migrations/0005_environment.sql")),
    ("0006_resource_tried", include_str!("../../migrations/0006_resource_tried.sql")),
];

/// Data written by a server of that release: every subject, in several statuses.
const ROWS: &str = include_str!("../fixtures/0006.sql");

/// The script that creates such a database; `types` are the engine-specific column types.
fn script(types: [&str; 2]) -> String {
    let mut script =
        "CREATE TABLE migration (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL);".to_owned();
    for (name, text) in SCHEMA {
        script += text;
        let applied = "INSERT INTO migration (name, applied_at) VALUES";
        writeln!(script, "\n{applied} ('{name}', 0);").unwrap();
    }
    script += ROWS;
    script.replace("{{identity}}", types[0]).replace("{{event_seq}}", types[1])
}

fn fill_sqlite(path: &Path) {
    let types = ["INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS (id) VIRTUAL"];
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(&script(types)).unwrap();
}

async fn fill_postgres(url: &str) {
    let types = ["BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BIGINT"];
    let client = raw(url).await;
    client.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
    client.batch_execute(&script(types)).await.unwrap();
}

/// `name status` of each, sorted.
fn sorted(rows: impl IntoIterator<Item = (String, &'static str)>) -> Vec<String> {
    let mut all: Vec<_> =
        rows.into_iter().map(|(name, status)| format!("{name} {status}")).collect();
    all.sort();
    all
}

async fn check(db: &Db) {
    let (mut read, page) = (db.read().await.unwrap(), Page::first(100));
    let clusters =
        cluster::list(&mut read, Scope::All, &cluster::Filter::default(), &page).await.unwrap();
    let found = sorted(clusters.iter().map(|c| (c.name.clone(), c.status.as_str())));
    assert_eq!(found, ["duo ready", "far waiting_for_agent", "local ready"]);

    let filter = deployment::Filter { with_instances: true, ..deployment::Filter::default() };
    let deployments = deployment::list(&mut read, Scope::All, &filter, &page).await.unwrap();
    assert_eq!(deployments.len(), 8);
    let big = deployments.iter().find(|d| d.name == "big").unwrap();
    assert_eq!(big.status.as_str(), "queued");
    assert_eq!(big.reason.code(), "Reported");
    assert!(big.reason.to_string().contains("1.5 cpu"), "{}", big.reason);
    let web = deployments.iter().find(|d| d.name == "web").unwrap();
    let replicas = deployment::replica::list(&mut read, web.id).await.unwrap();
    assert_eq!(replicas.len(), 2);
    assert!(replicas.iter().all(|replica| replica.place.is_some()));

    let filter = instance::Filter::default();
    let instances = instance::list(&mut read, Scope::All, &filter, &page).await.unwrap();
    let found = sorted(instances.iter().map(|i| (i.name.clone(), i.status.as_str())));
    assert_eq!(found, ["bus ready", "rex ready"]);

    let filter = environment::Filter::default();
    let environments = environment::list(&mut read, Scope::All, &filter, &page).await.unwrap();
    let found = sorted(environments.iter().map(|e| (e.name.clone(), e.status.as_str())));
    assert_eq!(found, ["staging deployed"]);
    let resources = resource::list_of_environment(&mut read, environments[0].id).await.unwrap();
    let found = sorted(resources.iter().map(|r| (r.node.name.clone(), r.status.as_str())));
    assert_eq!(found, ["first applied", "second applied"]);
    let organizations = organization::list(&mut read, Scope::All, &page).await.unwrap();
    let mut backfilled = Vec::new();
    for organization in organizations {
        let used = organization_quota::stored(&mut read, organization.id).await.unwrap();
        assert_eq!(used, organization_quota::counted(&mut read, organization.id).await.unwrap());
        backfilled.extend(used.into_iter().map(|(kind, milli)| format!("{kind}={milli}")));
    }
    assert!(backfilled.len() > 6, "{backfilled:?}");
    drop(read);

    db.number_events().await.unwrap();
    let mut read = db.read().await.unwrap();
    let events =
        event::list(&mut read, Scope::All, &event::Filter::default(), 0, 1000).await.unwrap();
    assert_eq!(events.len(), 87);
    drop(read);

    let mut tx = db.begin(Actor::Server).await.unwrap();
    deployment::request_delete(&mut tx, Scope::All, web.id).await.unwrap();
    tx.commit().await.unwrap();
}

on_both_engines! {
    async fn database_of_the_previous_schema_stays_readable_and_writable(engine: Engine) {
        let database = database(engine).await;
        let folder = tempfile::tempdir().unwrap();
        let url = match engine {
            Engine::Sqlite => {
                let path = folder.path().join("old.db");
                fill_sqlite(&path);
                format!("sqlite:{}", path.display())
            }
            Engine::Postgres => {
                fill_postgres(&database.url()).await;
                database.url()
            }
        };
        check(&open(&url).await.unwrap()).await;
    }
}
