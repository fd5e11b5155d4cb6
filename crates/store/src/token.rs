//! Session tokens: stored as hashes, each with an expiry.

use model::organization::quota::Subject as Counted;
use model::user::User;
use model::{Time, UserId};

use crate::db::{params, sql};
use crate::{Read, Result, Scope, Tx, organization_quota, user};

/// Stores the hash of a new token.
pub async fn create(tx: &mut Tx, user: UserId, hash: &str, expires_at: Time) -> Result<()> {
    let now = tx.now();
    tx.run(
        sql!("INSERT INTO token (hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)"),
        params![hash, user, now, expires_at],
    )
    .await?;
    let owner = user::get(tx, Scope::All, user).await?.organization_id;
    organization_quota::count(tx, owner, Counted::Tokens);
    Ok(())
}

/// The user of a token, and its expiry; `None` if it is unknown or expired.
pub async fn find(read: &mut Read, hash: &str, now: Time) -> Result<Option<(User, Time)>> {
    let row = read
        .first(
            sql!(
                "SELECT u.id, u.organization_id, u.username, u.display_name, u.role, u.access, ",
                "u.generation, u.created_at, t.expires_at ",
                "FROM token t JOIN \"user\" u ON u.id = t.user_id ",
                "WHERE t.hash = $1 AND t.expires_at > $2 AND u.deleted_at IS NULL"
            ),
            params![hash, now],
        )
        .await?;
    let Some(mut row) = row else { return Ok(None) };
    let user = user::read_row(&mut row)?;
    Ok(Some((user, row.take()?)))
}

/// Deletes a token.
pub async fn delete(tx: &mut Tx, hash: &str) -> Result<()> {
    tx.run(sql!("DELETE FROM token WHERE hash = $1"), params![hash]).await.map(drop)
}

/// Deletes all tokens of a user.
pub async fn delete_all_of(tx: &mut Tx, user: UserId) -> Result<()> {
    tx.run(sql!("DELETE FROM token WHERE user_id = $1"), params![user]).await.map(drop)
}

/// Deletes expired tokens.
pub async fn prune(tx: &mut Tx) -> Result<u64> {
    let now = tx.now();
    tx.run(sql!("DELETE FROM token WHERE expires_at <= $1"), params![now]).await
}
