//! Quota grants made through the API.

use model::event::Kind;
use model::{OrganizationId, Time, Xid};

use crate::db::{Row, Select, params, sql};
use crate::{Error, Read, Result, Tx, event, instance};

pub use model::quota::Quota;

/// Request for a grant.
#[derive(Debug, Clone)]
pub struct NewQuota {
    /// The holder: `organization/ID` or `user/NAME`.
    pub holder: String,
    /// Kind; every kind with the type if not set.
    pub kind: Option<String>,
    /// Instance type.
    pub instance_type: String,
    /// Billing model.
    pub billing_model: String,
    /// Number of units.
    pub limit: Option<i64>,
    /// Expiry.
    pub expires_at: Option<Time>,
}

macro_rules! columns {
    () => {
        "id, holder, kind, instance_type, billing_model, most, expires_at, created_by, created_at"
    };
}

/// Creates a grant; replaces one for the same holder, kind, type and billing model.
pub async fn create(tx: &mut Tx, new: &NewQuota) -> Result<Quota> {
    let (id, now, by) = (tx.id::<Xid>().to_string(), tx.now(), tx.actor().to_string());
    let sql = sql!(
        "DELETE FROM quota WHERE holder = $1 AND COALESCE(kind, '') = COALESCE($2, '') ",
        "AND instance_type = $3 AND billing_model = $4"
    );
    tx.run(sql, params![new.holder, new.kind, new.instance_type, new.billing_model]).await?;
    let row = tx
        .first(
            sql!(
                "INSERT INTO quota (id, holder, kind, instance_type, billing_model, most, expires_at, ",
                "created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING ",
                columns!()
            ),
            params![
                id,
                new.holder,
                new.kind,
                new.instance_type,
                new.billing_model,
                new.limit,
                new.expires_at,
                by,
                now
            ],
        )
        .await?;
    let quota = from_row(row.ok_or_else(|| Error::Database("insert returned no row".into()))?)?;
    record_event(tx, &quota, "quota_granted").await?;
    Ok(quota)
}

/// Revokes a grant.
pub async fn delete(tx: &mut Tx, id: &str) -> Result<Quota> {
    let sql = sql!("DELETE FROM quota WHERE id = $1 RETURNING ", columns!());
    let row = tx.first(sql, params![id]).await?;
    let quota = from_row(row.ok_or_else(|| Error::not_found("quota", id))?)?;
    record_event(tx, &quota, "quota_revoked").await?;
    Ok(quota)
}

/// Revokes all grants of a holder that is removed.
pub(crate) async fn delete_all_of(tx: &mut Tx, holder: &str) -> Result<()> {
    let sql = sql!("DELETE FROM quota WHERE holder = $1 RETURNING ", columns!());
    for row in tx.all(sql, params![holder]).await? {
        record_event(tx, &from_row(row)?, "quota_revoked").await?;
    }
    Ok(())
}

/// The grants of one holder, or all.
pub async fn list(read: &mut Read, holder: Option<&str>) -> Result<Vec<Quota>> {
    let rows = Select::new(concat!("SELECT ", columns!(), " FROM quota WHERE 1 = 1"))
        .and("holder = ?", holder.as_ref())
        .text(" ORDER BY created_at, id")
        .all(read)
        .await?;
    rows.into_iter().map(from_row).collect()
}

/// Whether any grant exists.
pub async fn is_in_use(read: &mut Read) -> Result<bool> {
    Ok(read
        .number(sql!("SELECT COUNT(*) FROM (SELECT 1 FROM quota LIMIT 1) AS any_of"), params![])
        .await?
        > 0)
}

/// Appends the event, and wakes the workers of instances.
///
/// All instances: the first grant enables enforcement for everybody, and the last disables it.
async fn record_event(tx: &mut Tx, quota: &Quota, change: &str) -> Result<()> {
    let organization: Option<OrganizationId> =
        quota.holder.strip_prefix("organization/").and_then(|id| id.parse().ok());
    let subject = organization.map_or_else(|| quota.holder.clone(), |id| id.to_string());
    event::append(tx, Kind::Organization, subject, organization, change, quota).await?;
    instance::wake_owner(tx, None, None).await
}

fn from_row(mut row: Row) -> Result<Quota> {
    Ok(Quota {
        id: row.take()?,
        holder: row.take()?,
        kind: row.take()?,
        instance_type: row.take()?,
        billing_model: row.take()?,
        limit: row.take()?,
        expires_at: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
    })
}
