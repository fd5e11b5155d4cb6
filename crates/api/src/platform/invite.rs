//! Invites: single-use codes that add a user to an organization.

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use model::{Time, invite};
use store::{Read, Scope};
use wire::invite::{Invite, InviteCode, InviteStatus, InviteUse, NewInvite, Redemption};
use wire::user::User;

use crate::account::UserRequest;
use crate::body::{Json, OptionalJson};
use crate::caller::{Call, From as Address};
use crate::idempotency::IdempotencyKey;
use crate::page::{List, PageQuery, Query, id};
use crate::{App, Problem, account, sign_up};

/// Creates an invite. The response is the only one that contains the code. For owners, unless the
/// server allows members.
#[utoipa::path(post, path = "/api/v1/invites", tag = "invites", request_body = Option<NewInvite>,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 201, body = Invite, description = "Created"), Problem))]
pub(crate) async fn invite_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    OptionalJson(request): OptionalJson<NewInvite>,
) -> Result<Response, Problem> {
    let max = app.settings.invite_max_life;
    let life = invite::check_lifetime("expires_in", request.expires_in, max)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = key.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let role = account::invited_role(&caller, request.role.as_deref())?;
    let (invite, code) = account::invite(&app, &mut tx, &caller, role, life).await?;
    let stored = view(&mut tx, invite, app.db.now()).await?;
    // A replayed response has no code: codes are not stored.
    let returned = Invite { code: Some(code), ..stored.clone() };
    key.finish_with_secret(&app, tx, &caller, &stored, &returned, ()).await
}

/// Lists the organization's invites.
#[utoipa::path(get, path = "/api/v1/invites", tag = "invites", params(PageQuery),
    responses((status = 200, body = List<Invite>, description = "A page of the list"), Problem))]
pub(crate) async fn invite_list(
    Call(app, caller): Call,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Invite>>, Problem> {
    let page = paging.page()?;
    let mut read = app.db.read().await?;
    let mut items = Vec::new();
    for invite in store::invite::list(&mut read, caller.scope(), &page).await? {
        items.push(view(&mut read, invite, app.db.now()).await?);
    }
    Ok(Answer(List::new(items, &page, |i| i.id.to_string())))
}

/// Returns an invite with its redemptions.
#[utoipa::path(get, path = "/api/v1/invites/{id}", tag = "invites",
    params(("id" = String, Path, description = "Invite ID, not its code")),
    responses((status = 200, body = Invite, description = "The invite"), Problem))]
pub(crate) async fn invite_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Invite>, Problem> {
    let id = id("invite", &text)?;
    let mut read = app.db.read().await?;
    let invite = store::invite::get(&mut read, caller.scope(), id).await?;
    let uses = store::invite::uses(&mut read, id).await?.into_iter().map(|u| InviteUse {
        user_id: u.user_id,
        username: u.username,
        used_at: u.used_at,
    });
    let uses = Some(uses.collect());
    Ok(Answer(Invite { uses, ..view(&mut read, invite, app.db.now()).await? }))
}

/// Reopens an invite: its code can be redeemed once more.
#[utoipa::path(post, path = "/api/v1/invites/{id}/reopen", tag = "invites",
    params(("id" = String, Path, description = "Invite ID, not its code")),
    request_body = Option<NewInvite>,
    responses((status = 200, body = Invite, description = "Reopened"), Problem))]
pub(crate) async fn invite_reopen(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(request): OptionalJson<NewInvite>,
) -> Result<Answer<Invite>, Problem> {
    let id = id("invite", &text)?;
    let max = app.settings.invite_max_life;
    let life = invite::check_lifetime("expires_in", request.expires_in, max)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::invite::get(&mut tx, caller.scope(), id).await?;
    sign_up::may_invite(&app, &caller)?;
    account::must_keep_role(found.role, request.role.as_deref())?;
    let invite = store::invite::reopen(&mut tx, caller.scope(), id, life).await?;
    tx.commit().await?;
    view(&mut app.db.read().await?, invite, app.db.now()).await.map(Answer)
}

/// Revokes an invite.
#[utoipa::path(delete, path = "/api/v1/invites/{id}", tag = "invites",
    params(("id" = String, Path, description = "Invite ID, not its code")),
    responses((status = 204, description = "Revoked"), Problem))]
pub(crate) async fn invite_revoke(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = id("invite", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::invite::get(&mut tx, caller.scope(), id).await?;
    store::invite::revoke(&mut tx, caller.scope(), id).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the status of an invite code.
#[utoipa::path(post, path = "/api/v1/invites/check", tag = "invites", security(()),
    request_body = InviteCode,
    responses((status = 200, body = InviteStatus, description = "Status"), Problem))]
pub(crate) async fn invite_check(
    State(app): State<App>,
    Json(request): Json<InviteCode>,
) -> Result<Answer<InviteStatus>, Problem> {
    status(&app, request.code).await.map(Answer)
}

/// Redeems an invite code: creates a user in the inviting organization.
#[utoipa::path(post, path = "/api/v1/invites/redeem", tag = "invites", security(()),
    request_body = Redemption,
    responses((status = 201, body = User, description = "User created"), Problem))]
pub(crate) async fn invite_redeem(
    State(app): State<App>,
    Address(from): Address,
    Json(new): Json<Redemption>,
) -> Result<(StatusCode, Answer<User>), Problem> {
    let display_name = new.display_name.as_deref();
    let request = UserRequest { username: &new.username, password: &new.password, display_name };
    let user = account::redeem(&app, from, &new.code, &request).await?;
    Ok((StatusCode::CREATED, Answer(user.into())))
}

/// Returns the status of an invite code.
pub(crate) async fn status(app: &App, code: String) -> Result<InviteStatus, Problem> {
    let invite = account::invite_by_code(app, &code).await?;
    let mut read = app.db.read().await?;
    let organization =
        store::organization::get(&mut read, Scope::All, invite.organization_id).await?;
    let invite = view(&mut read, invite, app.db.now()).await?;
    Ok(InviteStatus {
        code,
        active: invite.active,
        expired: invite.expired,
        used_by: invite.used_by,
        expires_at: invite.expires_at,
        organization: organization.name,
    })
}

async fn view(read: &mut Read, invite: invite::Invite, now: Time) -> Result<Invite, Problem> {
    let uses = match invite.used_by {
        Some(_) => store::invite::uses(read, invite.id).await?,
        None => Vec::new(),
    };
    let used_by = uses.into_iter().rfind(|u| Some(u.user_id) == invite.used_by).map(|u| u.username);
    Ok(Invite::new(&invite, used_by, now))
}
