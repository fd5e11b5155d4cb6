//! Answers to creating calls, kept so that a repeated call gets the same one.

use model::Time;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// An answer that was given before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// A hash of the request that it answered.
    pub request: String,
    /// Its HTTP status.
    pub status: i64,
    /// Its body.
    pub body: String,
}

/// The answer that `owner` got for `key`, if there is one.
pub async fn get(read: &mut Read, owner: &str, key: &str) -> Result<Option<Answer>> {
    let row = read
        .first(
            sql!("SELECT request, status, body FROM idempotency WHERE owner = $1 AND key = $2"),
            params![owner, key],
        )
        .await?;
    row.map(|mut row| Ok(Answer { request: row.take()?, status: row.take()?, body: row.take()? }))
        .transpose()
}

/// Keeps an answer. False: somebody else was first, and this transaction must not be committed.
pub async fn create(tx: &mut Tx, owner: &str, key: &str, answer: &Answer) -> Result<bool> {
    let now = tx.now();
    let kept = tx
        .run(
            sql!(
                "INSERT INTO idempotency (owner, key, request, status, body, created_at) ",
                "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, key) DO NOTHING"
            ),
            params![owner, key, answer.request, answer.status, answer.body, now],
        )
        .await?;
    Ok(kept == 1)
}

/// Forgets answers that are older.
pub async fn prune(tx: &mut Tx, before: Time) -> Result<u64> {
    tx.run(sql!("DELETE FROM idempotency WHERE created_at < $1"), params![before]).await
}
