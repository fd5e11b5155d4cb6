//! What the provider of a cluster is told, or has us keep, that must not be seen: kept encrypted.

use std::collections::BTreeMap;

use model::ClusterId;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// For which purpose a secret of a cluster is encrypted.
pub fn purpose(id: ClusterId, name: &str) -> String {
    format!("cluster/{id}/{name}")
}

/// All secrets of a cluster, encrypted, by name.
pub async fn all(read: &mut Read, id: ClusterId) -> Result<BTreeMap<String, String>> {
    let sql = sql!("SELECT name, sealed FROM cluster_secret WHERE cluster_id = $1");
    let rows = read.all(sql, params![id]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Keeps secrets of a cluster; each instead of the one that had its name.
pub async fn set(tx: &mut Tx, id: ClusterId, sealed: &BTreeMap<String, String>) -> Result<()> {
    for (name, sealed) in sealed {
        tx.run(
            sql!(
                "INSERT INTO cluster_secret (cluster_id, name, sealed) VALUES ($1, $2, $3) ",
                "ON CONFLICT (cluster_id, name) DO UPDATE SET sealed = excluded.sealed"
            ),
            params![id, name, sealed],
        )
        .await?;
    }
    Ok(())
}

/// Forgets all secrets of a cluster.
pub(super) async fn forget(tx: &mut Tx, id: ClusterId) -> Result<()> {
    tx.run(sql!("DELETE FROM cluster_secret WHERE cluster_id = $1"), params![id]).await.map(drop)
}
