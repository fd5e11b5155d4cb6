//! Organizations.

use model::event::Kind;
use model::organization::Organization;
use model::{OrganizationId, deployment, name};

use crate::db::{params, sql};
use crate::subject::{self, Any, Subject as _, by_id, row};
use crate::{Error, Page, Read, Result, Scope, Tx, event, invite, quota, template, user};

by_id!(OrganizationId: get(Read));

row! { Organization(OrganizationId) in "organization":
    id, name, deployments, max_priority, weight, generation, created_at;
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
    let sql = sql!(
        "SELECT ",
        columns!(),
        " FROM organization WHERE name_key = $1 AND deleted_at IS NULL"
    );
    read.first(sql, params![name::fold(name)]).await?.map(Organization::from_row).transpose()
}

/// A page of the organizations in scope.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<Organization>> {
    subject::list(read, scope, &Any::ALL, page).await
}

/// The organizations whose weight is not 1.
pub async fn weights(read: &mut Read) -> Result<Vec<(OrganizationId, i64)>> {
    let sql = sql!("SELECT id, weight FROM organization WHERE weight <> 1");
    let rows = read.all(sql, params![]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Checks a priority against the ceiling of the organization, which is `default` unless the
/// administrator has set another.
pub async fn check_priority(
    read: &mut Read,
    id: OrganizationId,
    priority: i64,
    default: i64,
) -> Result<()> {
    let sql = sql!("SELECT max_priority FROM organization WHERE id = $1");
    let row = read.first(sql, params![id]).await?;
    let own: Option<i64> = match row {
        Some(mut row) => row.take()?,
        None => return Err(Error::not_found("organization", id)),
    };
    Ok(deployment::check_ceiling(priority, own.unwrap_or(default))?)
}

/// Sets what the administrator allows an organization: its priority ceiling, if it is to change
/// (none is the server's setting), and its weight.
pub async fn set_share(
    tx: &mut Tx,
    id: OrganizationId,
    max_priority: Option<Option<i64>>,
    weight: Option<i64>,
) -> Result<Organization> {
    let row = tx
        .first(
            sql!(
                "UPDATE organization SET generation = generation + 1, ",
                "max_priority = CASE WHEN CAST($2 AS BIGINT) = 1 THEN CAST($3 AS BIGINT) ",
                "ELSE max_priority END, weight = COALESCE($4, weight) WHERE id = $1 RETURNING ",
                columns!()
            ),
            params![id, i64::from(max_priority.is_some()), max_priority.flatten(), weight],
        )
        .await?;
    let organization =
        Organization::from_row(row.ok_or_else(|| Error::not_found("organization", id))?)?;
    record_event(tx, &organization, "updated").await?;
    Ok(organization)
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
                "WHERE id = $1 AND deleted_at IS NULL RETURNING ",
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

/// What an organization still has, and its deletion would leave behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// Environments that are not destroyed.
    pub environments: i64,
    /// Instances.
    pub instances: i64,
    /// Deployments, with those of instances.
    pub deployments: i64,
    /// Clusters.
    pub clusters: i64,
}

impl Contents {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = [
            (self.environments, "environment"),
            (self.instances, "instance"),
            (self.deployments, "deployment"),
            (self.clusters, "cluster"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| {
            let plural = if *count == 1 { "" } else { "s" };
            format!("{count} {what}{plural}")
        });
        f.write_str(&counts.collect::<Vec<_>>().join(", "))
    }
}

/// What the organization still has.
pub async fn contents(read: &mut Read, id: OrganizationId) -> Result<Contents> {
    let row = read
        .first(
            sql!(
                "SELECT (SELECT COUNT(*) FROM environment WHERE organization_id = $1 ",
                "AND destroyed_at IS NULL), (SELECT COUNT(*) FROM instance WHERE organization_id = $1 ",
                "AND deleted_at IS NULL), (SELECT COUNT(*) FROM deployment WHERE organization_id = $1 ",
                "AND deleted_at IS NULL), (SELECT COUNT(*) FROM cluster WHERE organization_id = $1 ",
                "AND deleted_at IS NULL)"
            ),
            params![id],
        )
        .await?;
    let mut row = row.ok_or_else(|| Error::Database("count returned no row".into()))?;
    Ok(Contents {
        environments: row.take()?,
        instances: row.take()?,
        deployments: row.take()?,
        clusters: row.take()?,
    })
}

/// Deletes an organization that has no contents, with its users, tokens, invites, templates, service
/// accounts and quota. If it has contents, returns them, and the transaction must be dropped.
///
/// The row stays for the history. Its name is free: nothing of it is found by name.
pub async fn delete(tx: &mut Tx, id: OrganizationId) -> Result<Option<Contents>> {
    let now = tx.now();
    // Changing a unique column locks the row against inserts that refer to it: a concurrent
    // creation is either counted below, or waits and then fails in `ensure_exists`.
    let row = tx
        .first(
            sql!(
                "UPDATE organization SET deleted_at = $2, name_key = 'deleted/' || id, ",
                "foreign_id = NULL, generation = generation + 1 ",
                "WHERE id = $1 AND deleted_at IS NULL RETURNING ",
                columns!()
            ),
            params![id, now],
        )
        .await?;
    let organization =
        Organization::from_row(row.ok_or_else(|| Error::not_found("organization", id))?)?;
    let contents = contents(tx, id).await?;
    if !contents.is_empty() {
        tx.poison();
        return Ok(Some(contents));
    }
    let sql = sql!(
        "SELECT COUNT(*) FROM \"user\" WHERE organization_id = $1 AND access = 'platform' ",
        "AND deleted_at IS NULL"
    );
    if tx.number(sql, params![id]).await? > 0 {
        tx.poison();
        let why = "the organization of the platform administrator can't be deleted";
        return Err(Error::Conflict(why.into()));
    }
    template::delete_all_in(tx, id).await?;
    invite::revoke_all_in(tx, id).await?;
    user::delete_all_of(tx, id).await?;
    quota::delete_all_of(tx, &format!("organization/{id}")).await?;
    record_event(tx, &organization, "deleted").await?;
    Ok(None)
}

/// Fails if the organization was deleted. Called *after* an insert that refers to it: that insert
/// holds off a deletion until this transaction ends, so that no deletion can come in between.
pub(crate) async fn ensure_exists(tx: &mut Tx, id: Option<OrganizationId>) -> Result<()> {
    let Some(id) = id else { return Ok(()) };
    let sql = sql!("SELECT COUNT(*) FROM organization WHERE id = $1 AND deleted_at IS NULL");
    if tx.number(sql, params![id]).await? == 1 {
        return Ok(());
    }
    tx.poison();
    Err(Error::not_found("organization", id))
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
