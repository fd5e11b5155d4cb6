//! Schema migrations: forward only, applied at start, safe for concurrent starts.

use model::event::Actor;

use crate::db::params;
use crate::{Db, Error, Result, organization_quota};

/// The migration whose counters are filled from existing rows.
const ORGANIZATION_QUOTA: &str = "0011_organization_quota";

const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_foundation", include_str!("../migrations/0001_foundation.sql")),
    ("0002_instance", include_str!("../migrations/0002_instance.sql")),
    ("0003_cluster_provider", include_str!("../migrations/0003_cluster_provider.sql")),
    ("0004_pool", include_str!("../migrations/0004_pool.sql")),
    ("0005_environment", include_str!("../migrations/0005_environment.sql")),
    ("0006_resource_tried", include_str!("../migrations/0006_resource_tried.sql")),
    ("0007_operation", include_str!("../migrations/0007_operation.sql")),
    ("0008_reason", include_str!("../migrations/0008_reason.sql")),
    ("0009_encryption_key", include_str!("../migrations/0009_encryption_key.sql")),
    ("0010_fairness", include_str!("../migrations/0010_fairness.sql")),
    (ORGANIZATION_QUOTA, include_str!("../migrations/0011_organization_quota.sql")),
    ("0012_invite_role", include_str!("../migrations/0012_invite_role.sql")),
    ("0013_token", include_str!("../migrations/0013_token.sql")),
    ("0015_credential", include_str!("../migrations/0015_credential.sql")),
];

/// Migrates the database in one transaction.
pub(crate) async fn run(db: &Db) -> Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    tx.lock("migration").await?;
    tx.script(
        "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)",
    )
    .await?;
    let rows = tx.all("SELECT name FROM migration ORDER BY name", params![]).await?;
    let applied = rows.into_iter().map(|mut row| row.take()).collect::<Result<Vec<String>>>()?;
    if let Some(unknown) = applied.iter().find(|name| MIGRATIONS.iter().all(|m| m.0 != *name)) {
        return Err(Error::Conflict(format!(
            "the database was migrated by a newer Paddock (migration {unknown}); use that version"
        )));
    }
    for (name, text) in MIGRATIONS.iter().filter(|m| !applied.iter().any(|name| name == m.0)) {
        tx.script(&in_dialect(text, db.engine_name())).await?;
        if *name == ORGANIZATION_QUOTA {
            organization_quota::backfill(&mut tx).await?;
        }
        let now = tx.now();
        tx.run("INSERT INTO migration (name, applied_at) VALUES ($1, $2)", params![name, now])
            .await?;
        tracing::info!(migration = name, "schema migrated");
    }
    tx.commit().await
}

/// Replaces column types that differ between the engines: an identity column, and the event's
/// position, which is the identity where transactions are serialised.
fn in_dialect(text: &str, engine: &str) -> String {
    let (identity, event_seq) = match engine {
        "sqlite" => {
            ("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS (id) VIRTUAL")
        }
        _ => ("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BIGINT"),
    };
    text.replace("{{identity}}", identity).replace("{{event_seq}}", event_seq)
}
