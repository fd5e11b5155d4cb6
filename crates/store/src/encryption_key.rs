//! The ids of the keys with which stored secrets may be encrypted. Never a key itself.

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// The registered keys, oldest first: the last one encrypts.
pub async fn list(read: &mut Read) -> Result<Vec<String>> {
    let sql = sql!("SELECT id FROM encryption_key ORDER BY created_at, id");
    let rows = read.all(sql, params![]).await?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Locks the list until the end of the transaction: servers that start together agree on one key.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    tx.lock("encryption key").await
}

/// Registers a key, as the newest one if it is new.
pub async fn register(tx: &mut Tx, id: &str) -> Result<()> {
    let sql = sql!(
        "INSERT INTO encryption_key (id, created_at) VALUES ($1, ",
        "(SELECT CASE WHEN MAX(created_at) >= $2 THEN MAX(created_at) + 1 ELSE $2 END FROM encryption_key)) ",
        "ON CONFLICT (id) DO NOTHING"
    );
    let now = tx.now();
    tx.run(sql, params![id, now]).await.map(drop)
}

/// Removes a key that encrypts nothing any more, or that is lost.
pub async fn delete(tx: &mut Tx, id: &str) -> Result<()> {
    tx.run(sql!("DELETE FROM encryption_key WHERE id = $1"), params![id]).await.map(drop)
}
