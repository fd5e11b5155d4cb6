//! Tokens: stored as hashes, each with an expiry and a scope.
//!
//! Creation and revocation of a named token append an event of its user, which makes all replicas
//! drop their cached users. The last use is written without an event.

use model::event::Kind as SubjectKind;
use model::organization::quota::Subject as Counted;
use model::token::{Kind, MAX_PER_USER, Scope, Token, USE_INTERVAL};
use model::user::{self as user_model, User};
use model::{OrganizationId, Time, TokenId, UserId};
use serde::Serialize;

use crate::db::{Json, Row, params, readable, sql};
use crate::{Error, Page, Read, Result, Tx, event, organization_quota, user};

/// Columns of a token `t` of the user `u`.
macro_rules! columns {
    () => {
        "t.id, t.kind, t.name, t.scope, t.user_id, u.organization_id, u.kind, u.display_name, \
         t.created_by, t.created_at, t.expires_at, t.last_used_at"
    };
}

/// A token to create.
#[derive(Debug)]
pub struct NewToken<'a> {
    /// Its user.
    pub user: &'a User,
    /// How it is created.
    pub kind: Kind,
    /// Its name; empty for logins.
    pub name: &'a str,
    /// What it may be used for.
    pub scope: &'a Scope,
    /// Hash of the secret.
    pub hash: &'a str,
    /// Expiry.
    pub expires_at: Time,
}

/// Stores the hash of a login's token.
pub async fn create(tx: &mut Tx, user: UserId, hash: &str, expires_at: Time) -> Result<()> {
    let (id, now) = (tx.id::<TokenId>(), tx.now());
    tx.run(
        sql!(
            "INSERT INTO token (hash, user_id, created_at, expires_at, id) ",
            "VALUES ($1, $2, $3, $4, $5)"
        ),
        params![hash, user, now, expires_at, id],
    )
    .await?;
    let owner = user::get(tx, crate::Scope::All, user).await?.organization_id;
    organization_quota::count(tx, owner, Counted::Tokens);
    Ok(())
}

/// Creates a named token, within [`MAX_PER_USER`].
pub async fn create_named(tx: &mut Tx, new: &NewToken<'_>) -> Result<Token> {
    // Two concurrent calls must not both take the last free place.
    tx.lock(&format!("tokens/{}", new.user.id)).await?;
    let (id, now, by) = (tx.id::<TokenId>(), tx.now(), tx.actor().to_string());
    let created = tx
        .run(
            sql!(
                "INSERT INTO token (hash, user_id, created_at, expires_at, id, kind, name, scope, ",
                "created_by) SELECT $1, $2, CAST($3 AS BIGINT), CAST($4 AS BIGINT), $5, $6, $7, $8, $9 ",
                "WHERE (SELECT COUNT(*) FROM token WHERE user_id = $2 AND kind <> 'session' ",
                "AND expires_at > $3) < $10"
            ),
            params![
                new.hash,
                new.user.id,
                now,
                new.expires_at,
                id,
                new.kind,
                new.name,
                Json(new.scope),
                by,
                MAX_PER_USER
            ],
        )
        .await?;
    if created != 1 {
        return Err(Error::Limit { limit: MAX_PER_USER, what: "tokens per user" });
    }
    organization_quota::count(tx, new.user.organization_id, Counted::Tokens);
    let found = find(tx, new.hash, now).await?;
    let (user, token) = found.ok_or_else(|| Error::not_found("user", new.user.id))?;
    record_event(tx, &user, &token, "token_created").await?;
    Ok(token)
}

/// The user of a token, and the token; `None` if it is unknown or expired.
pub async fn find(read: &mut Read, hash: &str, now: Time) -> Result<Option<(User, Token)>> {
    let row = read
        .first(
            sql!(
                "SELECT u.id, u.organization_id, u.username, u.display_name, u.role, u.access, ",
                "u.kind, u.generation, u.created_at, ",
                columns!(),
                " FROM token t JOIN \"user\" u ON u.id = t.user_id ",
                "WHERE t.hash = $1 AND t.expires_at > $2 AND u.deleted_at IS NULL"
            ),
            params![hash, now],
        )
        .await?;
    let Some(mut row) = row else { return Ok(None) };
    let user = user::read_row(&mut row)?;
    Ok(Some((user, from_row(row)?)))
}

/// Whose tokens a caller manages.
#[derive(Debug, Clone, Copy)]
pub struct Manager {
    /// The caller's own.
    pub user: UserId,
    /// Also those of this organization's service accounts: for owners.
    pub service_accounts_of: Option<OrganizationId>,
}

/// A page of the valid tokens, by id.
pub async fn list(read: &mut Read, by: Manager, page: &Page, now: Time) -> Result<Vec<Token>> {
    let after = page.after.clone().unwrap_or_default();
    let rows = read
        .all(
            sql!(
                "SELECT ",
                columns!(),
                " FROM token t JOIN \"user\" u ON u.id = t.user_id ",
                "WHERE t.expires_at > $1 AND t.id <> '' AND t.id > $2 AND (t.user_id = $3 OR ",
                "(u.kind = 'service_account' AND u.organization_id = $4)) ",
                "ORDER BY t.id LIMIT $5 OFFSET $6"
            ),
            params![now, after, by.user, by.service_accounts_of, page.limit, page.skip],
        )
        .await?;
    Ok(readable(rows, from_row))
}

/// A valid token that the caller manages.
pub async fn get(read: &mut Read, by: Manager, id: TokenId, now: Time) -> Result<Token> {
    let row = read
        .first(
            sql!(
                "SELECT ",
                columns!(),
                " FROM token t JOIN \"user\" u ON u.id = t.user_id ",
                "WHERE t.expires_at > $1 AND t.id = $2 AND (t.user_id = $3 OR ",
                "(u.kind = 'service_account' AND u.organization_id = $4))"
            ),
            params![now, id, by.user, by.service_accounts_of],
        )
        .await?;
    from_row(row.ok_or_else(|| Error::not_found("token", id))?)
}

/// Revokes a token that the caller manages. Of two concurrent calls one finds nothing.
pub async fn revoke(tx: &mut Tx, by: Manager, id: TokenId) -> Result<Token> {
    let now = tx.now();
    let token = get(tx, by, id, now).await?;
    let deleted = tx.run(sql!("DELETE FROM token WHERE id = $1"), params![id]).await?;
    if deleted != 1 {
        return Err(Error::not_found("token", id));
    }
    let user = user::get(tx, crate::Scope::All, token.user_id).await?;
    record_event(tx, &user, &token, "token_revoked").await?;
    Ok(token)
}

/// Deletes a token by its hash.
pub async fn delete(tx: &mut Tx, hash: &str) -> Result<()> {
    tx.run(sql!("DELETE FROM token WHERE hash = $1"), params![hash]).await.map(drop)
}

/// Deletes all tokens of a user.
pub async fn delete_all_of(tx: &mut Tx, user: UserId) -> Result<()> {
    tx.run(sql!("DELETE FROM token WHERE user_id = $1"), params![user]).await.map(drop)
}

/// Records the use of a token, unless a use within [`USE_INTERVAL`] is recorded.
pub async fn set_used(tx: &mut Tx, hash: &str, at: Time) -> Result<()> {
    tx.run(
        sql!(
            "UPDATE token SET last_used_at = $2 WHERE hash = $1 ",
            "AND (last_used_at IS NULL OR last_used_at <= $3)"
        ),
        params![hash, at, at - USE_INTERVAL],
    )
    .await
    .map(drop)
}

/// Deletes expired tokens.
pub async fn prune(tx: &mut Tx) -> Result<u64> {
    let now = tx.now();
    tx.run(sql!("DELETE FROM token WHERE expires_at <= $1"), params![now]).await
}

/// The data of an event: the user and the token.
#[derive(Serialize)]
struct UserToken<'a> {
    #[serde(flatten)]
    user: &'a User,
    token: &'a Token,
}

async fn record_event(tx: &mut Tx, user: &User, token: &Token, change: &str) -> Result<()> {
    let (id, owner) = (user.id, Some(user.organization_id));
    event::append(tx, SubjectKind::User, id, owner, change, &UserToken { user, token }).await
}

fn from_row(mut row: Row) -> Result<Token> {
    let (id, kind, name) = (row.take()?, row.take()?, row.take()?);
    let Json(scope) = row.take()?;
    let (user_id, organization_id) = (row.take()?, row.take()?);
    let (of, display_name): (user_model::Kind, String) = (row.take()?, row.take()?);
    let service_account = (of == user_model::Kind::ServiceAccount).then_some(display_name);
    Ok(Token {
        id,
        kind,
        name,
        scope,
        user_id,
        organization_id,
        service_account,
        created_by: row.take()?,
        created_at: row.take()?,
        expires_at: row.take()?,
        last_used_at: row.take()?,
    })
}
