//! Organizations.

use model::event::Kind;
use model::organization::Organization;
use model::{OrganizationId, name};

use crate::db::{params, sql};
use crate::subject::{self, Any, Subject as _, by_id, row};
use crate::{Error, Page, Read, Result, Scope, Tx, event};

by_id!(OrganizationId: get(Read));

row! { Organization(OrganizationId) in "organization":
    id, name, deployments, generation, created_at;
    const LIVING: &'static str = "1 = 1";
    const VISIBLE: &'static str = "id = ?";
}

/// Creates an organization with a unique name.
pub async fn create(tx: &mut Tx, name: &str) -> Result<Organization> {
    lock(tx, name).await?;
    let (id, now) = (tx.id::<OrganizationId>(), tx.now());
    let made = tx
        .first(
            sql!(
                "INSERT INTO organization (id, name, name_key, created_at) VALUES ($1, $2, $3, $4) ",
                "ON CONFLICT (name_key) DO NOTHING RETURNING ",
                columns!()
            ),
            params![id, name, name::fold(name), now],
        )
        .await?;
    let organization =
        Organization::from_row(made.ok_or(Error::AlreadyExists { field: "organization.name" })?)?;
    record_event(tx, &organization, "created").await?;
    Ok(organization)
}

/// The organization with that name, in any scope.
pub async fn find(read: &mut Read, name: &str) -> Result<Option<Organization>> {
    let sql = sql!("SELECT ", columns!(), " FROM organization WHERE name_key = $1");
    read.first(sql, params![name::fold(name)]).await?.map(Organization::from_row).transpose()
}

/// A page of the organizations in scope.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<Organization>> {
    subject::list(read, scope, &Any::ALL, page).await
}

/// Renames an organization.
pub async fn set_name(tx: &mut Tx, id: OrganizationId, name: &str) -> Result<Organization> {
    // Two concurrent renames to the same name must not both find it free.
    tx.lock("organization names").await?;
    lock(tx, name).await?;
    let taken = find(tx, name).await?.is_some_and(|other| other.id != id);
    if taken {
        return Err(Error::AlreadyExists { field: "name" });
    }
    let row = tx
        .first(
            sql!(
                "UPDATE organization SET name = $2, name_key = $3, generation = generation + 1 ",
                "WHERE id = $1 RETURNING ",
                columns!()
            ),
            params![id, name, name::fold(name)],
        )
        .await?;
    let organization =
        Organization::from_row(row.ok_or_else(|| Error::not_found("organization", id))?)?;
    record_event(tx, &organization, "updated").await?;
    Ok(organization)
}

/// Of two concurrent claims of a name, the second must see the first.
async fn lock(tx: &mut Tx, name: &str) -> Result<()> {
    tx.lock(&format!("organization/{}", name::fold(name))).await
}

/// Changes the number of deployments. Quotas have their own count, but servers of the release before
/// limit by this one.
pub(crate) async fn add_to_count(tx: &mut Tx, id: OrganizationId, change: i64) -> Result<()> {
    let sql = sql!("UPDATE organization SET deployments = deployments + $2 WHERE id = $1");
    tx.run(sql, params![id, change]).await.map(drop)
}

async fn record_event(tx: &mut Tx, organization: &Organization, change: &str) -> Result<()> {
    event::append(
        tx,
        Kind::Organization,
        organization.id,
        Some(organization.id),
        change,
        organization,
    )
    .await
}
