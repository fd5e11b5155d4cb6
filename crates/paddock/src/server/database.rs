//! Opens the database, and names this server among the replicas on it.

use std::sync::Arc;

use anyhow::Context;
use base::{OsEntropy, SystemClock, entropy};
use model::event::Actor;
use store::{Db, work};

use crate::settings::{Database, Settings};

/// Opens the database that is set.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Db> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    match &settings.database {
        Database::Sqlite(path, durability) => {
            let opened = Db::open_sqlite(path, *durability, clock, entropy).await;
            let db = opened
                .with_context(|| format!("--database-url: {} can't be opened", path.display()))?;
            end_old_leases(&db).await?;
            Ok(db)
        }
        Database::Postgres(url) => Db::open_postgres(url, clock, entropy)
            .await
            .context("--database-url: PostgreSQL can't be used"),
    }
}

/// A SQLite file has one server only: after a crash it need not wait for its own old leases.
async fn end_old_leases(db: &Db) -> anyhow::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    work::orphan(&mut tx).await?;
    Ok(tx.commit().await?)
}

/// The holder of this server's leases. The one server of a SQLite file takes its own lease again.
pub(super) fn holder(settings: &Settings, db: &Db) -> String {
    match settings.database {
        Database::Sqlite(..) => "this server".to_owned(),
        Database::Postgres(_) => format!("{:016x}", entropy::noise(db.entropy())),
    }
}
