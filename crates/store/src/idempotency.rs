//! Stored responses of create requests, so that a repeated request gets the same one.

use model::Time;

use crate::db::{params, sql};
use crate::{Read, Result, Tx};

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// Hash of the request.
    pub request: String,
    /// HTTP status.
    pub status: i64,
    /// Body.
    pub body: String,
}

/// The response that `owner` got for `key`.
pub async fn get(read: &mut Read, owner: &str, key: &str) -> Result<Option<StoredResponse>> {
    let row = read
        .first(
            sql!("SELECT request, status, body FROM idempotency WHERE owner = $1 AND key = $2"),
            params![owner, key],
        )
        .await?;
    row.map(|mut row| {
        Ok(StoredResponse { request: row.take()?, status: row.take()?, body: row.take()? })
    })
    .transpose()
}

/// Stores a response. `false`: another request was first, and this transaction must be dropped.
pub async fn create(tx: &mut Tx, owner: &str, key: &str, answer: &StoredResponse) -> Result<bool> {
    let now = tx.now();
    let created = tx
        .run(
            sql!(
                "INSERT INTO idempotency (owner, key, request, status, body, created_at) ",
                "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, key) DO NOTHING"
            ),
            params![owner, key, answer.request, answer.status, answer.body, now],
        )
        .await?;
    Ok(created == 1)
}

/// Deletes older responses.
pub async fn prune(tx: &mut Tx, before: Time) -> Result<u64> {
    tx.run(sql!("DELETE FROM idempotency WHERE created_at < $1"), params![before]).await
}
