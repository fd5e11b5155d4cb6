//! Tokens of agents: each is good for exactly one cluster, and kept only as a hash.

use std::time::Duration;

use model::{ClusterId, Time};

use crate::db::{params, sql};
use crate::{Read, Result, Tx, cluster};

/// Keeps the hash of a new token. Those of before end after `overlap`, so that an agent that runs has
/// time to change over.
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
    cluster::token_made(tx, on).await
}

/// Keeps the hash of a token that ends by itself, beside those that there are.
pub async fn lend(tx: &mut Tx, on: ClusterId, hash: &str, expires_at: Time) -> Result<()> {
    let now = tx.now();
    let sql = sql!(
        "INSERT INTO agent_token (hash, cluster_id, created_at, expires_at) VALUES ($1, $2, $3, $4)"
    );
    tx.run(sql, params![hash, on, now, expires_at]).await.map(drop)
}

/// Whose token it is; nobody's if it is unknown or has ended, or its cluster is gone.
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

/// Forgets tokens that have ended.
pub async fn prune(tx: &mut Tx) -> Result<u64> {
    let now = tx.now();
    tx.run(sql!("DELETE FROM agent_token WHERE expires_at <= $1"), params![now]).await
}
