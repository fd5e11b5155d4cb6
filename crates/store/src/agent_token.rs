//! Agent tokens: each is valid for exactly one cluster, and stored only as a hash.

use std::time::Duration;

use model::{ClusterId, Time};

use crate::db::{params, sql};
use crate::{Read, Result, Tx, cluster};

/// Stores the hash of a new token. Older ones expire after `overlap`, so that the agent can switch.
pub async fn create(tx: &mut Tx, on: ClusterId, hash: &str, overlap: Duration) -> Result<()> {
    cluster::lock(tx, on).await?;
    let (now, end) = (tx.now(), tx.now() + overlap);
    tx.run(
        sql!(
            "UPDATE agent_token SET expires_at = $2 WHERE cluster_id = $1 ",
            "AND (expires_at IS NULL OR expires_at > $2)"
        ),
        params![on, end],
    )
    .await?;
    tx.run(
        sql!("INSERT INTO agent_token (hash, cluster_id, created_at) VALUES ($1, $2, $3)"),
        params![hash, on, now],
    )
    .await?;
    cluster::record_token(tx, on).await
}

/// Stores the hash of a token with an expiry, next to the existing ones.
pub async fn create_temporary(
    tx: &mut Tx,
    on: ClusterId,
    hash: &str,
    expires_at: Time,
) -> Result<()> {
    let now = tx.now();
    let sql = sql!(
        "INSERT INTO agent_token (hash, cluster_id, created_at, expires_at) VALUES ($1, $2, $3, $4)"
    );
    tx.run(sql, params![hash, on, now, expires_at]).await.map(drop)
}

/// The cluster of a token; `None` if it is unknown or expired, or the cluster is deleted.
pub async fn find(read: &mut Read, hash: &str, now: Time) -> Result<Option<ClusterId>> {
    let row = read
        .first(
            sql!(
                "SELECT t.cluster_id FROM agent_token t JOIN cluster c ON c.id = t.cluster_id ",
                "WHERE t.hash = $1 AND (t.expires_at IS NULL OR t.expires_at > $2) ",
                "AND c.deleted_at IS NULL"
            ),
            params![hash, now],
        )
        .await?;
    row.map(|mut row| row.take()).transpose()
}

/// Deletes expired tokens.
pub async fn prune(tx: &mut Tx) -> Result<u64> {
    let now = tx.now();
    tx.run(sql!("DELETE FROM agent_token WHERE expires_at <= $1"), params![now]).await
}
