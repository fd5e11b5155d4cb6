//! Users and organizations of external identity providers, identified by their external ids.

use model::organization::Organization;
use model::user::{Access, NewUser, Role, User};
use model::{OrganizationId, Xid, name};

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx, organization, user};

/// Not a valid password hash: users of an external identity provider and service accounts have no
/// password here.
pub(crate) const NO_PASSWORD: &str = "!";

/// A user who logs in for the first time.
#[derive(Debug, Clone)]
pub struct NewExternalUser<'a> {
    /// External id, unique: issuer and subject.
    pub id: &'a str,
    /// External id of the organization.
    pub organization: &'a str,
    /// Preferred username; another one is generated if it is in use.
    pub username: &'a str,
    /// Display name.
    pub display_name: &'a str,
    /// Role.
    pub role: Role,
}

/// The user with that external id.
pub async fn find(read: &mut Read, id: &str) -> Result<Option<User>> {
    let sql = sql!(
        "SELECT id, organization_id, username, display_name, role, access, kind, generation, ",
        "created_at, deleted_at FROM \"user\" WHERE foreign_id = $1"
    );
    let Some(mut row) = read.first(sql, params![id]).await? else { return Ok(None) };
    let user = user::read_row(&mut row)?;
    if row.take::<Option<i64>>()?.is_some() {
        return Err(Error::Conflict("this user was removed from the organization".into()));
    }
    Ok(Some(user))
}

/// The external id of an organization.
pub async fn organization_external_id(
    read: &mut Read,
    id: OrganizationId,
) -> Result<Option<String>> {
    let sql = sql!("SELECT foreign_id FROM organization WHERE id = $1");
    read.first(sql, params![id]).await?.map_or(Ok(None), |mut row| row.take())
}

/// Creates a user, and the organization if it is new. Concurrent calls create one of each.
pub async fn create_user(tx: &mut Tx, new: &NewExternalUser<'_>) -> Result<User> {
    tx.lock(&format!("foreign organization/{}", new.organization)).await?;
    if let Some(known) = find(tx, new.id).await? {
        return Ok(known);
    }
    let home = organization(tx, new.organization).await?;
    let created = insert_user(tx, home, new).await?;
    let sql = sql!("UPDATE \"user\" SET foreign_id = $2 WHERE id = $1");
    tx.run(sql, params![created.id, new.id]).await?;
    Ok(created)
}

async fn organization(tx: &mut Tx, foreign: &str) -> Result<OrganizationId> {
    let sql = sql!("SELECT id FROM organization WHERE foreign_id = $1");
    if let Some(mut row) = tx.first(sql, params![foreign]).await? {
        return row.take();
    }
    let created = create_organization(tx, foreign).await?;
    let sql = sql!("UPDATE organization SET foreign_id = $2 WHERE id = $1");
    tx.run(sql, params![created.id, foreign]).await?;
    Ok(created.id)
}

async fn create_organization(tx: &mut Tx, foreign: &str) -> Result<Organization> {
    let short: String = foreign.chars().filter(|c| !c.is_control()).take(70).collect();
    match organization::create(tx, &short).await {
        Err(Error::AlreadyExists { .. }) => {
            let other = format!("{short} {}", tx.id::<Xid>());
            organization::create(tx, &other).await
        }
        other => other,
    }
}

async fn insert_user(tx: &mut Tx, home: OrganizationId, new: &NewExternalUser<'_>) -> Result<User> {
    let username = clean(new.username);
    let display = name::line("display_name", new.display_name, 200);
    let display_name = display.unwrap_or_else(|_| username.clone());
    let user = NewUser { username: username.clone(), display_name };
    match user::create(tx, home, &user, NO_PASSWORD, new.role, Access::Tenant).await {
        Err(Error::AlreadyExists { .. }) => {
            let username = format!("{username}.{}", tx.id::<Xid>());
            let user = NewUser { username, ..user };
            user::create(tx, home, &user, NO_PASSWORD, new.role, Access::Tenant).await
        }
        other => other,
    }
}

/// Removes characters that are not allowed in usernames.
fn clean(username: &str) -> String {
    let allowed = |c: &char| c.is_alphanumeric() || "._-@+".contains(*c);
    let clean: String = username.chars().filter(allowed).take(43).collect();
    if clean.is_empty() { "user".into() } else { clean }
}
