//! What executors had us keep for a resource that must not be seen: kept encrypted.

use std::collections::BTreeMap;

use model::ResourceId;

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// For which purpose a secret of a resource is encrypted.
pub fn purpose(id: ResourceId, name: &str) -> String {
    format!("resource/{id}/{name}")
}

/// All secrets of a resource, encrypted, by name.
pub async fn all(read: &mut Read, id: ResourceId) -> Result<BTreeMap<String, String>> {
    let sql = sql!("SELECT name, sealed FROM resource_secret WHERE resource_id = $1");
    let rows = read.all(sql, params![id]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Keeps secrets of a resource, each instead of the one that had its name. Whoever has an older fence
/// than the resource's keeps nothing.
pub async fn set(
    tx: &mut Tx,
    id: ResourceId,
    fence: i64,
    sealed: &BTreeMap<String, String>,
) -> Result<()> {
    for (name, sealed) in sealed {
        let sql = sql!(
            "INSERT INTO resource_secret (resource_id, name, sealed) ",
            "SELECT id, $3, $4 FROM resource WHERE id = $1 AND fence = $2 ",
            "ON CONFLICT (resource_id, name) DO UPDATE SET sealed = excluded.sealed"
        );
        if tx.run(sql, params![id, fence, name, sealed]).await? == 0 {
            return Err(Error::Conflict("another server has taken over this resource".into()));
        }
    }
    Ok(())
}

/// Forgets all secrets of a resource.
pub async fn forget(tx: &mut Tx, id: ResourceId) -> Result<()> {
    tx.run(sql!("DELETE FROM resource_secret WHERE resource_id = $1"), params![id]).await.map(drop)
}
