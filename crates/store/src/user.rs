//! Users. A deleted user keeps its row, so that the history can name it.

use model::event::Kind;
use model::organization::quota::Subject as Counted;
use model::user::{Access, NewUser, Role, User};
use model::{OrganizationId, Quantity, UserId, name};

use crate::db::{params, sql};
use crate::subject::{self, Any, Subject as _, by_id, row};
use crate::{Error, Page, Read, Result, Scope, Tx, event, invite, organization_quota, token};

by_id!(UserId: get(Read));

row! { User(UserId) in "\"user\"":
    id, organization_id, username, display_name, role, access, generation, created_at;
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
    let (id, now) = (tx.id::<UserId>(), tx.now());
    let made = tx
        .first(
            sql!(
                "INSERT INTO \"user\" (id, organization_id, username, username_key, display_name, ",
                "password_hash, role, access, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ",
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
                now
            ],
        )
        .await?;
    let user = User::from_row(made.ok_or(Error::AlreadyExists { field: "username" })?)?;
    organization_quota::charge(tx, organization, Counted::Members, Quantity::whole(1));
    record_event(tx, &user, "created").await?;
    Ok(user)
}

/// A page of the users in scope.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<User>> {
    subject::list(read, scope, &Any::ALL, page).await
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
    /// Role.
    pub role: Option<Role>,
    /// Hash of the new password. All tokens of the user are deleted.
    pub password_hash: Option<String>,
}

/// Changes a user. An organization keeps at least one owner.
pub async fn set(tx: &mut Tx, scope: Scope, id: UserId, change: &Change) -> Result<User> {
    let user = get(tx, scope, id).await?;
    if change.role.is_some_and(|role| role != Role::Owner) {
        ensure_owner_remains(tx, &user).await?;
    }
    let row = tx
        .first(
            sql!(
                "UPDATE \"user\" SET display_name = COALESCE($2, display_name), ",
                "role = COALESCE($3, role), password_hash = COALESCE($4, password_hash), ",
                "generation = generation + 1 WHERE id = $1 AND deleted_at IS NULL RETURNING ",
                columns!()
            ),
            params![id, change.display_name, change.role, change.password_hash],
        )
        .await?;
    let user = User::from_row(row.ok_or_else(|| Error::not_found("user", id))?)?;
    if change.password_hash.is_some() {
        token::delete_all_of(tx, id).await?;
    }
    record_event(tx, &user, "updated").await?;
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
    token::delete_all_of(tx, id).await?;
    invite::revoke_all_of(tx, id).await?;
    record_event(tx, &user, "removed").await
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
            "an organization needs an owner: make another member owner first".into(),
        ));
    }
    Ok(())
}

async fn record_event(tx: &mut Tx, user: &User, change: &str) -> Result<()> {
    event::append(tx, Kind::User, user.id, Some(user.organization_id), change, user).await
}
