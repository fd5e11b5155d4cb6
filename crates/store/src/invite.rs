//! Invites. Only the hash of the code is stored.

use std::time::Duration;

use model::event::Kind;
use model::invite::Invite;
use model::organization::quota::Subject as Counted;
use model::user::Role;
use model::{InviteId, OrganizationId, Time, UserId};

use crate::db::{params, sql};
use crate::subject::{self, Any, Subject as _, by_id, row};
use crate::{Error, Page, Read, Result, Scope, Tx, event, organization, organization_quota, user};

by_id!(InviteId: get(Read));

row! { Invite(InviteId) in "invite":
    id, organization_id, role, created_by, created_at, expires_at, used_by, used_at, times_used;
    const LIVING: &'static str = "1 = 1";
}

/// A use of an invite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The user who joined.
    pub user_id: UserId,
    /// The user's name.
    pub username: String,
    /// When.
    pub used_at: Time,
}

/// Creates an invite for the bearer of the code with that hash.
pub async fn create(
    tx: &mut Tx,
    organization: OrganizationId,
    by: UserId,
    code_hash: &str,
    role: Role,
    life: Duration,
) -> Result<Invite> {
    let (id, now) = (tx.id::<InviteId>(), tx.now());
    let row = tx
        .first(
            sql!(
                "INSERT INTO invite (id, organization_id, code_hash, role, created_by, created_at, ",
                "expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ",
                columns!()
            ),
            params![id, organization, code_hash, role, by, now, now + life],
        )
        .await?;
    let invite =
        Invite::from_row(row.ok_or_else(|| Error::Database("insert returned no row".into()))?)?;
    organization::ensure_exists(tx, Some(organization)).await?;
    organization_quota::count(tx, organization, Counted::Invites);
    record_event(tx, &invite, "created").await?;
    Ok(invite)
}

/// The invite of a code, in any scope.
pub async fn find(read: &mut Read, code_hash: &str) -> Result<Option<Invite>> {
    let sql = sql!("SELECT ", columns!(), " FROM invite WHERE code_hash = $1");
    read.first(sql, params![code_hash]).await?.map(Invite::from_row).transpose()
}

/// A page of the invites in scope.
pub async fn list(read: &mut Read, scope: Scope, page: &Page) -> Result<Vec<Invite>> {
    subject::list(read, scope, &Any::ALL, page).await
}

/// All uses of an invite, oldest first.
pub async fn uses(read: &mut Read, id: InviteId) -> Result<Vec<Use>> {
    let rows = read
        .all(
            sql!(
                "SELECT i.user_id, u.username, i.used_at FROM invite_use i ",
                "JOIN \"user\" u ON u.id = i.user_id WHERE i.invite_id = $1 ORDER BY i.used_at, i.user_id"
            ),
            params![id],
        )
        .await?;
    let uses = rows.into_iter().map(|mut row| {
        Ok(Use { user_id: row.take()?, username: row.take()?, used_at: row.take()? })
    });
    uses.collect()
}

/// Redeems an invite for a user created in the same transaction. A second redemption fails.
pub async fn redeem(tx: &mut Tx, id: InviteId, user: UserId) -> Result<Invite> {
    let now = tx.now();
    let row = tx
        .first(
            sql!(
                "UPDATE invite SET used_by = $2, used_at = $3, times_used = times_used + 1 ",
                "WHERE id = $1 AND used_by IS NULL AND expires_at > $3 RETURNING ",
                columns!()
            ),
            params![id, user, now],
        )
        .await?;
    let Some(row) = row else {
        return Err(Error::Conflict("this invite was already used".into()));
    };
    let invite = Invite::from_row(row)?;
    tx.run(
        sql!("INSERT INTO invite_use (invite_id, user_id, used_at) VALUES ($1, $2, $3)"),
        params![id, user, now],
    )
    .await?;
    record_event(tx, &invite, "redeemed").await?;
    Ok(invite)
}

/// Reopens an invite: its code works once more, for `life`. Not if its creator was removed, who
/// knows the code.
pub async fn reopen(tx: &mut Tx, scope: Scope, id: InviteId, life: Duration) -> Result<Invite> {
    let invite = get(tx, scope, id).await?;
    match user::get(tx, Scope::All, invite.created_by).await {
        Err(Error::NotFound { .. }) => {
            let reason = "the user who created this invite was removed; create a new invite";
            return Err(Error::Conflict(reason.into()));
        }
        other => other?,
    };
    let until = tx.now() + life;
    let invite = update(
        tx,
        sql!(
            "UPDATE invite SET used_by = NULL, used_at = NULL, expires_at = $2 WHERE id = $1 RETURNING ",
            columns!()
        ),
        id,
        until,
    )
    .await?;
    organization_quota::count(tx, invite.organization_id, Counted::Invites);
    record_event(tx, &invite, "reopened").await?;
    Ok(invite)
}

/// Revokes an invite before its expiry.
pub async fn revoke(tx: &mut Tx, scope: Scope, id: InviteId) -> Result<Invite> {
    get(tx, scope, id).await?;
    let now = tx.now();
    let invite = update(
        tx,
        sql!("UPDATE invite SET expires_at = $2 WHERE id = $1 RETURNING ", columns!()),
        id,
        now,
    )
    .await?;
    record_event(tx, &invite, "revoked").await?;
    Ok(invite)
}

/// Revokes all invites that a user created and that can be redeemed.
pub async fn revoke_all_of(tx: &mut Tx, creator: UserId) -> Result<()> {
    let now = tx.now();
    let rows = tx
        .all(
            sql!(
                "UPDATE invite SET expires_at = $2 WHERE created_by = $1 AND used_by IS NULL ",
                "AND expires_at > $2 RETURNING ",
                columns!()
            ),
            params![creator, now],
        )
        .await?;
    for row in rows {
        record_event(tx, &Invite::from_row(row)?, "revoked").await?;
    }
    Ok(())
}

/// Revokes all invites of an organization that is deleted.
pub(crate) async fn revoke_all_in(tx: &mut Tx, organization: OrganizationId) -> Result<()> {
    let now = tx.now();
    let sql = sql!(
        "UPDATE invite SET expires_at = $2 WHERE organization_id = $1 AND expires_at > $2 RETURNING ",
        columns!()
    );
    for row in tx.all(sql, params![organization, now]).await? {
        record_event(tx, &Invite::from_row(row)?, "revoked").await?;
    }
    Ok(())
}

async fn update(tx: &mut Tx, sql: &'static str, id: InviteId, at: Time) -> Result<Invite> {
    let row = tx.first(sql, params![id, at]).await?;
    Invite::from_row(row.ok_or_else(|| Error::not_found("invite", id))?)
}

async fn record_event(tx: &mut Tx, invite: &Invite, change: &str) -> Result<()> {
    event::append(tx, Kind::Invite, invite.id, Some(invite.organization_id), change, invite).await
}
