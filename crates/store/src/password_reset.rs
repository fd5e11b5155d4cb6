//! Password resets: single-use codes with which a user sets a new password. Stored as hashes.

use model::user::User;
use model::{Time, UserId};

use crate::db::{params, sql};
use crate::{Error, Read, Result, Scope, Tx, token, user};

/// Replaces the user's codes by this one, disables the password and revokes all tokens.
pub async fn create(
    tx: &mut Tx,
    scope: Scope,
    id: UserId,
    code_hash: &str,
    expires_at: Time,
) -> Result<User> {
    let user = user::disable_password(tx, scope, id).await?;
    delete_all_of(tx, id).await?;
    token::delete_all_of(tx, id).await?;
    let now = tx.now();
    tx.run(
        sql!(
            "INSERT INTO password_reset (code_hash, user_id, created_at, expires_at) ",
            "VALUES ($1, $2, $3, $4)"
        ),
        params![code_hash, id, now, expires_at],
    )
    .await?;
    Ok(user)
}

/// Whether the code is valid.
pub async fn is_valid(read: &mut Read, code_hash: &str, now: Time) -> Result<bool> {
    let sql = sql!("SELECT COUNT(*) FROM password_reset WHERE code_hash = $1 AND expires_at > $2");
    Ok(read.number(sql, params![code_hash, now]).await? == 1)
}

/// Redeems a code: sets the password. Of two concurrent redemptions one fails.
pub async fn redeem(tx: &mut Tx, code_hash: &str, password_hash: String) -> Result<User> {
    let now = tx.now();
    let sql = sql!(
        "DELETE FROM password_reset WHERE code_hash = $1 AND expires_at > $2 RETURNING user_id"
    );
    let Some(mut row) = tx.first(sql, params![code_hash, now]).await? else {
        return Err(Error::Conflict("this reset code was already used or has expired".into()));
    };
    let change = user::Change { password_hash: Some(password_hash), ..user::Change::default() };
    user::set(tx, Scope::All, row.take()?, &change).await
}

/// Deletes the codes of a user.
pub async fn delete_all_of(tx: &mut Tx, user: UserId) -> Result<()> {
    tx.run(sql!("DELETE FROM password_reset WHERE user_id = $1"), params![user]).await.map(drop)
}

/// Deletes expired codes.
pub async fn prune(tx: &mut Tx) -> Result<u64> {
    let now = tx.now();
    tx.run(sql!("DELETE FROM password_reset WHERE expires_at <= $1"), params![now]).await
}
