//! Service accounts: credentials for an organization's programs. Secrets are stored as hashes.

use model::organization::quota::{Limit, Subject as Counted};
use model::{OrganizationId, Time};
use serde::Serialize;

use crate::db::{Row, params, sql};
use crate::{Error, Read, Result, Scope, Tx, organization, organization_quota};

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceAccount {
    /// Id, a UUID.
    pub id: String,
    /// Organization.
    pub organization_id: OrganizationId,
    /// Owner, by username.
    pub owner: String,
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// OAuth client id.
    pub client_id: String,
    /// When it was created.
    pub created_at: Time,
}

macro_rules! columns {
    () => {
        "id, organization_id, owner, name, description, client_id, created_at"
    };
}

/// Creates an account, within `limit` per organization.
pub async fn create(
    tx: &mut Tx,
    new: &ServiceAccount,
    secret_hash: &str,
    limit: Option<i64>,
) -> Result<()> {
    // Two concurrent calls must not both take the last free place.
    tx.lock(&format!("service accounts/{}", new.organization_id)).await?;
    let default = limit.map(Limit::count);
    let kind = Counted::ServiceAccounts;
    let limit = organization_quota::limit(tx, new.organization_id, kind, default).await?;
    let limit = limit.amount().map_or(i64::MAX, |amount| amount.milli() / 1000);
    let made = tx
        .run(
            sql!(
                "INSERT INTO service_account (id, organization_id, owner, name, description, client_id, ",
                "secret_hash, created_at) SELECT $1, $2, $3, $4, $5, $6, $7, CAST($8 AS BIGINT) WHERE ",
                "(SELECT COUNT(*) FROM service_account WHERE organization_id = $2) < $9"
            ),
            params![
                new.id,
                new.organization_id,
                new.owner,
                new.name,
                new.description,
                new.client_id,
                secret_hash,
                new.created_at,
                limit
            ],
        )
        .await?;
    if made == 1 {
        return organization::ensure_exists(tx, Some(new.organization_id)).await;
    }
    Err(Error::Limit { limit, what: "service accounts per organization" })
}

/// Returns one account.
pub async fn get(read: &mut Read, scope: Scope, id: &str) -> Result<ServiceAccount> {
    let own = scope.organization();
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM service_account WHERE id = $1 AND organization_id = COALESCE($2, organization_id)"
    );
    let row = read.first(sql, params![id, own]).await?;
    from_row(row.ok_or_else(|| Error::not_found("service account", id))?)
}

/// A page of an organization's accounts, by id.
pub async fn list(
    read: &mut Read,
    organization: OrganizationId,
    skip: i64,
    limit: i64,
) -> Result<Vec<ServiceAccount>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM service_account WHERE organization_id = $1 ORDER BY created_at, id LIMIT $2 OFFSET $3"
    );
    let rows = read.all(sql, params![organization, limit, skip]).await?;
    rows.into_iter().map(from_row).collect()
}

/// The account with that client id, and the hash of its secret.
pub async fn find(read: &mut Read, client_id: &str) -> Result<Option<(ServiceAccount, String)>> {
    let sql =
        sql!("SELECT ", columns!(), ", secret_hash FROM service_account WHERE client_id = $1");
    let Some(mut row) = read.first(sql, params![client_id]).await? else { return Ok(None) };
    Ok(Some((read_account(&mut row)?, row.take()?)))
}

/// Changes the secret of an account.
pub async fn set_secret(tx: &mut Tx, id: &str, secret_hash: &str) -> Result<()> {
    let sql = sql!("UPDATE service_account SET secret_hash = $2 WHERE id = $1");
    tx.run(sql, params![id, secret_hash]).await.map(drop)
}

/// Deletes an account.
pub async fn delete(tx: &mut Tx, id: &str) -> Result<()> {
    tx.run(sql!("DELETE FROM service_account WHERE id = $1"), params![id]).await.map(drop)
}

/// Deletes the accounts of a user, who is removed: they act with the user's rights.
pub(crate) async fn delete_all_of(
    tx: &mut Tx,
    organization: OrganizationId,
    owner: &str,
) -> Result<()> {
    let sql = sql!("DELETE FROM service_account WHERE organization_id = $1 AND owner = $2");
    tx.run(sql, params![organization, owner]).await.map(drop)
}

fn from_row(mut row: Row) -> Result<ServiceAccount> {
    read_account(&mut row)
}

fn read_account(row: &mut Row) -> Result<ServiceAccount> {
    Ok(ServiceAccount {
        id: row.take()?,
        organization_id: row.take()?,
        owner: row.take()?,
        name: row.take()?,
        description: row.take()?,
        client_id: row.take()?,
        created_at: row.take()?,
    })
}
