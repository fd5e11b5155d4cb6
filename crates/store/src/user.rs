//! Users. A deleted user keeps its row, so that the history can name it.

use model::event::Kind;
use model::organization::quota::Subject as Counted;
use model::user::{self, Access, NewUser, Role, User};
use model::{OrganizationId, Quantity, UserId, name};

use crate::db::{Select, params, sql};
use crate::external_identity::NO_PASSWORD;
use crate::subject::{self, Filter, Subject as _, by_id, row};
use crate::{
    Error, Page, Read, Result, Scope, Tx, event, invite, organization, organization_quota,
    password_reset, quota, service_account, token,
};

by_id!(UserId: get(Read));

row! { User(UserId) in "\"user\"":
    id, organization_id, username, display_name, role, access, kind, generation, created_at;
}

/// Creates a user with a unique username.
pub async fn create(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewUser,
    password_hash: &str,
    role: Role,
    access: Access,
) -> Result<User> {
    insert(tx, organization, new, password_hash, (role, access, user::Kind::Person)).await
}

/// Creates a service account with a name that is unique in the organization.
pub async fn create_service_account(
    tx: &mut Tx,
    organization: OrganizationId,
    name: &str,
    role: Role,
) -> Result<User> {
    let username = user::service_account_username(organization, name);
    let new = NewUser { username, display_name: name.to_owned() };
    let rights = (role, Access::Tenant, user::Kind::ServiceAccount);
    insert(tx, organization, &new, NO_PASSWORD, rights).await
}

/// The organization's service account with that name.
pub async fn find_service_account(
    read: &mut Read,
    organization: OrganizationId,
    name: &str,
) -> Result<Option<User>> {
    let found = credentials(read, &user::service_account_username(organization, name)).await?;
    Ok(found.map(|(user, _)| user))
}

async fn insert(
    tx: &mut Tx,
    organization: OrganizationId,
    new: &NewUser,
    password_hash: &str,
    (role, access, kind): (Role, Access, user::Kind),
) -> Result<User> {
    let (id, now) = (tx.id::<UserId>(), tx.now());
    let made = tx
        .first(
            sql!(
                "INSERT INTO \"user\" (id, organization_id, username, username_key, display_name, ",
                "password_hash, role, access, kind, created_at) ",
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ",
                "ON CONFLICT (username_key) DO NOTHING RETURNING ",
                columns!()
            ),
            params![
                id,
                organization,
                new.username,
                name::fold(&new.username),
                new.display_name,
                password_hash,
                role,
                access,
                kind,
                now
            ],
        )
        .await?;
    let user = User::from_row(made.ok_or(Error::AlreadyExists { field: "username" })?)?;
    organization::ensure_exists(tx, Some(organization)).await?;
    organization_quota::charge(tx, organization, Counted::Members, Quantity::whole(1));
    record_event(tx, &user, "created").await?;
    Ok(user)
}

/// Filter for users. Service accounts are not listed.
#[derive(Debug, Default)]
struct People {
    username_key: Option<String>,
}

impl Filter for People {
    type Subject = User;

    fn restrict<'a>(&'a self, select: Select<'a>, _: Option<&'a OrganizationId>) -> Select<'a> {
        select.text(" AND kind = 'person'").and("username_key = ?", self.username_key.as_ref())
    }
}

/// A page of the people in scope.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<User>> {
    subject::list(read, scope, &People::default(), page).await
}

/// The person in scope with that name, ignoring case; at most one.
pub async fn list_by_name(read: &mut Read, scope: Scope, username: &str) -> Result<Vec<User>> {
    let named = People { username_key: Some(name::fold(username)) };
    subject::list(read, scope, &named, &Page::first(1)).await
}

/// The user with that name, and the hash of the password.
pub async fn credentials(read: &mut Read, username: &str) -> Result<Option<(User, String)>> {
    let row = read
        .first(
            sql!(
                "SELECT ",
                columns!(),
                ", password_hash FROM \"user\" WHERE username_key = $1 AND deleted_at IS NULL"
            ),
            params![name::fold(username)],
        )
        .await?;
    let Some(mut row) = row else { return Ok(None) };
    let user = read_row(&mut row)?;
    Ok(Some((user, row.take()?)))
}

/// Fields of a user to update.
#[derive(Debug, Default)]
pub struct Change {
    /// Display name.
    pub display_name: Option<String>,
    /// Role. A lesser one revokes the open invites of the user, who knows their codes.
    pub role: Option<Role>,
    /// Access. An auditor has the role viewer.
    pub access: Option<Access>,
    /// Hash of the new password. All tokens of the user are deleted.
    pub password_hash: Option<String>,
}

/// Changes a user. An organization keeps at least one owner.
pub async fn set(tx: &mut Tx, scope: Scope, id: UserId, change: &Change) -> Result<User> {
    let user = get(tx, scope, id).await?;
    if user.access == Access::Platform && change.access.is_some_and(|access| access != user.access)
    {
        return Err(Error::Conflict("the platform administrator can't be changed".into()));
    }
    let role = match change.access {
        Some(Access::Auditor) => Some(Role::Viewer),
        _ => change.role,
    };
    if user.kind == user::Kind::ServiceAccount {
        check_service_account(change)?;
    } else if role.is_some_and(|role| role != Role::Owner) {
        ensure_owner_remains(tx, &user).await?;
    }
    let row = tx
        .first(
            sql!(
                "UPDATE \"user\" SET display_name = COALESCE($2, display_name), ",
                "role = COALESCE($3, role), password_hash = COALESCE($4, password_hash), ",
                "access = COALESCE($5, access), generation = generation + 1 WHERE id = $1 AND deleted_at IS NULL RETURNING ",
                columns!()
            ),
            params![id, change.display_name, role, change.password_hash, change.access],
        )
        .await?;
    let was = user.role;
    let user = User::from_row(row.ok_or_else(|| Error::not_found("user", id))?)?;
    if user.role.is_less_than(was) {
        invite::revoke_all_of(tx, id).await?;
    }
    if change.password_hash.is_some() {
        token::delete_all_of(tx, id).await?;
        password_reset::delete_all_of(tx, id).await?;
    }
    record_event(tx, &user, "updated").await?;
    Ok(user)
}

/// A service account has neither a password nor another name, does not own the organization and
/// reads no other.
fn check_service_account(change: &Change) -> Result<()> {
    if let Some(role) = change.role {
        user::service_account_role("role", role)?;
    }
    if change.password_hash.is_some() || change.display_name.is_some() {
        let why = "a service account has no password and keeps its name: create another one";
        return Err(Error::Conflict(why.into()));
    }
    if change.access.is_some() {
        let why = "a service account acts in its organization only: name a user";
        return Err(Error::Conflict(why.into()));
    }
    Ok(())
}

/// Disables the password of a user until it is reset.
pub(crate) async fn disable_password(tx: &mut Tx, scope: Scope, id: UserId) -> Result<User> {
    let user = get(tx, scope, id).await?;
    let row = tx
        .first(
            sql!(
                "UPDATE \"user\" SET password_hash = $2, generation = generation + 1 WHERE id = $1 ",
                "AND deleted_at IS NULL AND foreign_id IS NULL AND kind = 'person' RETURNING ",
                columns!()
            ),
            params![id, NO_PASSWORD],
        )
        .await?;
    let Some(row) = row else {
        return Err(Error::Conflict(format!(
            "user {} has no password: it uses an OIDC login or is a service account",
            user.username
        )));
    };
    let user = User::from_row(row)?;
    record_event(tx, &user, "password_reset").await?;
    Ok(user)
}

/// Deletes a user. The tokens are deleted, the invites revoked, the username is free.
pub async fn delete(tx: &mut Tx, scope: Scope, id: UserId) -> Result<()> {
    let user = get(tx, scope, id).await?;
    if user.access == Access::Platform {
        return Err(Error::Conflict("the platform administrator can't be removed".into()));
    }
    ensure_owner_remains(tx, &user).await?;
    let now = tx.now();
    tx.run(
        sql!("UPDATE \"user\" SET deleted_at = $2, username_key = NULL WHERE id = $1"),
        params![id, now],
    )
    .await?;
    organization_quota::release(tx, user.organization_id, Counted::Members, Quantity::whole(1));
    invite::revoke_all_of(tx, id).await?;
    forget(tx, &user).await
}

/// Deletes all users of an organization that is deleted. Their OIDC logins may join another one.
pub(crate) async fn delete_all_of(tx: &mut Tx, organization: OrganizationId) -> Result<()> {
    let now = tx.now();
    let rows = tx
        .all(
            sql!(
                "UPDATE \"user\" SET deleted_at = $2, username_key = NULL, foreign_id = NULL ",
                "WHERE organization_id = $1 AND deleted_at IS NULL RETURNING ",
                columns!()
            ),
            params![organization, now],
        )
        .await?;
    for row in rows {
        organization_quota::release(tx, organization, Counted::Members, Quantity::whole(1));
        forget(tx, &User::from_row(row)?).await?;
    }
    // Users who were removed earlier are no longer barred from an organization that is gone.
    let sql = sql!("UPDATE \"user\" SET foreign_id = NULL WHERE organization_id = $1");
    tx.run(sql, params![organization]).await.map(drop)
}

/// Removes everything that a later user of the same name would inherit, and what acts for the user.
async fn forget(tx: &mut Tx, user: &User) -> Result<()> {
    token::delete_all_of(tx, user.id).await?;
    password_reset::delete_all_of(tx, user.id).await?;
    service_account::delete_all_of(tx, user.organization_id, &user.username).await?;
    quota::delete_all_of(tx, &format!("user/{}", user.username)).await?;
    record_event(tx, user, "removed").await
}

async fn ensure_owner_remains(tx: &mut Tx, leaving: &User) -> Result<()> {
    // Two owners who leave concurrently must not both see the other stay.
    tx.lock(&format!("owners/{}", leaving.organization_id)).await?;
    // Reads the user again: it may have changed while waiting for the lock.
    let leaving = get(tx, Scope::All, leaving.id).await?;
    let others = tx
        .number(
            sql!(
                "SELECT COUNT(*) FROM \"user\" WHERE organization_id = $1 AND id <> $2 ",
                "AND role = 'owner' AND deleted_at IS NULL"
            ),
            params![leaving.organization_id, leaving.id],
        )
        .await?;
    if leaving.role == Role::Owner && others == 0 {
        return Err(Error::Conflict(
            "an organization needs an owner: make another member owner first, or delete the organization"
                .into(),
        ));
    }
    Ok(())
}

async fn record_event(tx: &mut Tx, user: &User, change: &str) -> Result<()> {
    event::append(tx, Kind::User, user.id, Some(user.organization_id), change, user).await
}
