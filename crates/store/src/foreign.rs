//! Users and organizations that sign in elsewhere: known by the names that they have there.

use model::organization::Organization;
use model::user::{Access, NewUser, Role, User};
use model::{OrganizationId, Xid, name};

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx, organization, user};

/// Cannot be the hash of any password: who signs in elsewhere has none here.
const NO_PASSWORD: &str = "!";

/// Somebody who is seen for the first time.
#[derive(Debug, Clone)]
pub struct Newcomer<'a> {
    /// Its name elsewhere, unique: issuer and subject.
    pub id: &'a str,
    /// The name of its organization elsewhere.
    pub organization: &'a str,
    /// What it would be called; another name is made if that one is taken.
    pub username: &'a str,
    /// The name that others see.
    pub display_name: &'a str,
    /// What it may do.
    pub role: Role,
}

/// The user of that name elsewhere; none if it was never seen.
pub async fn find(read: &mut Read, id: &str) -> Result<Option<User>> {
    let sql = sql!(
        "SELECT id, organization_id, username, display_name, role, access, generation, created_at, ",
        "deleted_at FROM \"user\" WHERE foreign_id = $1"
    );
    let Some(mut row) = read.first(sql, params![id]).await? else { return Ok(None) };
    let user = user::read_row(&mut row)?;
    if row.take::<Option<i64>>()?.is_some() {
        return Err(Error::Conflict("this user was removed from its organization".into()));
    }
    Ok(Some(user))
}

/// What an organization is called elsewhere, if it signs in there.
pub async fn organization_name(read: &mut Read, id: OrganizationId) -> Result<Option<String>> {
    let sql = sql!("SELECT foreign_id FROM organization WHERE id = $1");
    read.first(sql, params![id]).await?.map_or(Ok(None), |mut row| row.take())
}

/// Lets somebody in, with its organization if that is new, too. Two at once make one of each.
pub async fn admit(tx: &mut Tx, new: &Newcomer<'_>) -> Result<User> {
    tx.lock(&format!("foreign organization/{}", new.organization)).await?;
    if let Some(known) = find(tx, new.id).await? {
        return Ok(known);
    }
    let home = organization(tx, new.organization).await?;
    let made = make(tx, home, new).await?;
    let sql = sql!("UPDATE \"user\" SET foreign_id = $2 WHERE id = $1");
    tx.run(sql, params![made.id, new.id]).await?;
    Ok(made)
}

async fn organization(tx: &mut Tx, foreign: &str) -> Result<OrganizationId> {
    let sql = sql!("SELECT id FROM organization WHERE foreign_id = $1");
    if let Some(mut row) = tx.first(sql, params![foreign]).await? {
        return row.take();
    }
    let made = name_organization(tx, foreign).await?;
    let sql = sql!("UPDATE organization SET foreign_id = $2 WHERE id = $1");
    tx.run(sql, params![made.id, foreign]).await?;
    Ok(made.id)
}

async fn name_organization(tx: &mut Tx, foreign: &str) -> Result<Organization> {
    let short: String = foreign.chars().filter(|c| !c.is_control()).take(70).collect();
    match organization::create(tx, &short).await {
        Err(Error::Taken { .. }) => {
            let other = format!("{short} {}", tx.id::<Xid>());
            organization::create(tx, &other).await
        }
        other => other,
    }
}

async fn make(tx: &mut Tx, home: OrganizationId, new: &Newcomer<'_>) -> Result<User> {
    let username = clean(new.username);
    let display = name::line("display_name", new.display_name, 200);
    let display_name = display.unwrap_or_else(|_| username.clone());
    let wanted = NewUser { username: username.clone(), display_name };
    match user::create(tx, home, &wanted, NO_PASSWORD, new.role, Access::Tenant).await {
        Err(Error::Taken { .. }) => {
            let username = format!("{username}.{}", tx.id::<Xid>());
            let wanted = NewUser { username, ..wanted };
            user::create(tx, home, &wanted, NO_PASSWORD, new.role, Access::Tenant).await
        }
        other => other,
    }
}

/// A name as users have them here.
fn clean(username: &str) -> String {
    let allowed = |c: &char| c.is_alphanumeric() || "._-@+".contains(*c);
    let clean: String = username.chars().filter(allowed).take(43).collect();
    if clean.is_empty() { "user".into() } else { clean }
}
