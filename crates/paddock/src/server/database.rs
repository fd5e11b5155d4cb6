//! Opens the database and names this server as a lease holder.

use std::sync::Arc;

use anyhow::Context;
use base::{OsEntropy, SystemClock, entropy};
use model::event::Actor;
use store::{Db, work};

use crate::settings::{Database, Settings};

/// Opens the configured database.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Db> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    match &settings.database {
        Database::Sqlite(path, durability) => {
            let opened = Db::open_sqlite(path, *durability, clock, entropy).await;
            let db = opened
                .with_context(|| format!("--database-url: cannot open {}", path.display()))?;
            release_old_leases(&db).await?;
            Ok(db)
        }
        Database::Postgres(url) => Db::open_postgres(url, clock, entropy)
            .await
            .context("--database-url: cannot use PostgreSQL"),
    }
}

/// Releases leases from before a crash. Safe because a SQLite file has only one server.
async fn release_old_leases(db: &Db) -> anyhow::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    work::release_all(&mut tx).await?;
    Ok(tx.commit().await?)
}

/// Lease holder name of this server. Constant for SQLite, whose only server reacquires its leases.
pub(super) fn holder(settings: &Settings, db: &Db) -> String {
    match settings.database {
        Database::Sqlite(..) => "this server".to_owned(),
        Database::Postgres(_) => format!("{:016x}", entropy::random_u64(db.entropy())),
    }
}
