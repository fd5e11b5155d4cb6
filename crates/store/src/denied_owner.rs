//! Users who may not have instances.

use model::event::Kind;

use crate::db::{Row, params, sql};
use crate::{Error, Read, Result, Tx, event, instance};

pub use model::quota::DeniedOwner;

macro_rules! columns {
    () => {
        "owner, reason, created_by, created_at"
    };
}

/// Denies a user instances; existing ones are deleted.
pub async fn create(tx: &mut Tx, owner: &str, reason: &str) -> Result<DeniedOwner> {
    let (now, by) = (tx.now(), tx.actor().to_string());
    let sql = sql!(
        "INSERT INTO denied_owner (owner, reason, created_by, created_at) VALUES ($1, $2, $3, $4) ",
        "ON CONFLICT (owner) DO UPDATE SET reason = excluded.reason RETURNING ",
        columns!()
    );
    let row = tx.first(sql, params![owner, reason, by, now]).await?;
    let denied = from_row(row.ok_or_else(|| Error::Database("insert returned no row".into()))?)?;
    record_event(tx, &denied, "denied").await?;
    Ok(denied)
}

/// Allows a user instances again. Instances that are being deleted stay deleted.
pub async fn delete(tx: &mut Tx, owner: &str) -> Result<()> {
    let sql = sql!("DELETE FROM denied_owner WHERE owner = $1 RETURNING ", columns!());
    let row = tx.first(sql, params![owner]).await?;
    let denied = from_row(row.ok_or_else(|| Error::not_found("denied owner", owner))?)?;
    record_event(tx, &denied, "allowed").await
}

/// All denied users, by name.
pub async fn list(read: &mut Read) -> Result<Vec<DeniedOwner>> {
    let rows = read
        .all(sql!("SELECT ", columns!(), " FROM denied_owner ORDER BY owner"), params![])
        .await?;
    rows.into_iter().map(from_row).collect()
}

/// Whether this user is denied.
pub async fn is_denied(read: &mut Read, owner: &str) -> Result<bool> {
    let sql = sql!("SELECT COUNT(*) FROM denied_owner WHERE owner = $1");
    Ok(read.number(sql, params![owner]).await? > 0)
}

async fn record_event(tx: &mut Tx, denied: &DeniedOwner, change: &str) -> Result<()> {
    event::append(tx, Kind::User, &denied.owner, None, change, denied).await?;
    instance::wake_owner(tx, None, Some(&denied.owner)).await
}

fn from_row(mut row: Row) -> Result<DeniedOwner> {
    Ok(DeniedOwner {
        owner: row.take()?,
        reason: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
    })
}
