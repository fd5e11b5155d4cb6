//! Credentials of organizations for external systems. Secrets are stored encrypted.

use model::OrganizationId;
use model::credential::{Credential, MAX_CREDENTIALS, System};
use model::event::Kind;

use crate::db::{Row, params, sql};
use crate::{Error, Read, Result, Tx, event};

macro_rules! columns {
    () => {
        "organization_id, system, name, username, updated_by, updated_at"
    };
}

/// The credentials of an organization, by system and name.
pub async fn list(read: &mut Read, organization: OrganizationId) -> Result<Vec<Credential>> {
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM credential WHERE organization_id = $1 ORDER BY system, name"
    );
    read.all(sql, params![organization]).await?.into_iter().map(from_row).collect()
}

/// Name, user and ciphertext of the credentials of an organization for a system.
pub async fn sealed(
    read: &mut Read,
    organization: OrganizationId,
    system: System,
) -> Result<Vec<(String, Option<String>, String)>> {
    let sql = sql!(
        "SELECT name, username, sealed FROM credential WHERE organization_id = $1 AND system = $2 ",
        "ORDER BY name"
    );
    let rows = read.all(sql, params![organization, system.as_str()]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take()?))).collect()
}

/// Creates or replaces a credential.
pub async fn set(
    tx: &mut Tx,
    organization: OrganizationId,
    (system, name): (System, &str),
    username: Option<&str>,
    sealed: &str,
) -> Result<Credential> {
    let (now, by) = (tx.now(), tx.actor().to_string());
    let sql = sql!(
        "INSERT INTO credential (organization_id, system, name, username, sealed, updated_by, ",
        "updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ",
        "ON CONFLICT (organization_id, system, name) DO UPDATE SET username = excluded.username, ",
        "sealed = excluded.sealed, updated_by = excluded.updated_by, ",
        "updated_at = excluded.updated_at RETURNING ",
        columns!()
    );
    let kind = system.as_str();
    let row = tx.first(sql, params![organization, kind, name, username, sealed, by, now]).await?;
    let credential =
        from_row(row.ok_or_else(|| Error::Database("insert returned no row".into()))?)?;
    let count = sql!("SELECT COUNT(*) FROM credential WHERE organization_id = $1");
    if tx.number(count, params![organization]).await? > MAX_CREDENTIALS {
        return Err(Error::Conflict(format!(
            "the organization has {MAX_CREDENTIALS} credentials, the maximum; delete one first"
        )));
    }
    record_event(tx, &credential, "credential_set").await?;
    Ok(credential)
}

/// Deletes a credential.
pub async fn delete(
    tx: &mut Tx,
    organization: OrganizationId,
    (system, name): (System, &str),
) -> Result<()> {
    let sql = sql!(
        "DELETE FROM credential WHERE organization_id = $1 AND system = $2 AND name = $3 RETURNING ",
        columns!()
    );
    let row = tx.first(sql, params![organization, system.as_str(), name]).await?;
    let missing = || Error::not_found("credential", format!("{system}/{name}"));
    let credential = from_row(row.ok_or_else(missing)?)?;
    record_event(tx, &credential, "credential_deleted").await
}

async fn record_event(tx: &mut Tx, credential: &Credential, change: &str) -> Result<()> {
    let organization = credential.organization_id;
    event::append(tx, Kind::Organization, organization, Some(organization), change, credential)
        .await
}

fn from_row(mut row: Row) -> Result<Credential> {
    let organization_id = row.take()?;
    let system: String = row.take()?;
    let system = system.parse().map_err(|_| Error::Database("invalid credential system".into()))?;
    Ok(Credential {
        organization_id,
        system,
        name: row.take()?,
        username: row.take()?,
        updated_by: row.take()?,
        updated_at: row.take()?,
    })
}
