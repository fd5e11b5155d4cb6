//! Invites: single-use codes that bring a new user into an organization.

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use model::{Time, invite};
use store::{Read, Scope};
use wire::invite::{Invite, InviteCode, InviteLife, InviteStatus, InviteUse, Redemption};
use wire::user::User;

use crate::account::Wanted;
use crate::body::{Json, OptionalJson};
use crate::caller::Call;
use crate::idempotency::Once;
use crate::page::{List, Query, Slice, id};
use crate::{App, Problem, account};

/// Makes an invite. Its code is shown only in this answer.
#[utoipa::path(post, path = "/api/v1/invites", tag = "invites", request_body = Option<InviteLife>,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 201, body = Invite, description = "Made"), Problem))]
pub(crate) async fn invite_create(
    Call(app, caller): Call,
    once: Once,
    OptionalJson(wanted): OptionalJson<InviteLife>,
) -> Result<Response, Problem> {
    let life = invite::life("expires_in", wanted.expires_in)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = once.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let (invite, code) = account::invite(&app, &mut tx, &caller.user, life).await?;
    let kept = view(&mut tx, invite, app.db.now()).await?;
    // A repeat gets the invite, but not its code: that is kept nowhere.
    let shown = Invite { code: Some(code), ..kept.clone() };
    once.finish_showing(&app, tx, &caller, &kept, &shown, ()).await
}

/// Lists the organization's invites.
#[utoipa::path(get, path = "/api/v1/invites", tag = "invites", params(Slice),
    responses((status = 200, body = List<Invite>, description = "A part of the list"), Problem))]
pub(crate) async fn invite_list(
    Call(app, caller): Call,
    Query(slice): Query<Slice>,
) -> Result<Answer<List<Invite>>, Problem> {
    let page = slice.page()?;
    let mut read = app.db.read().await?;
    let mut items = Vec::new();
    for invite in store::invite::list(&mut read, caller.scope(), &page).await? {
        items.push(view(&mut read, invite, app.db.now()).await?);
    }
    Ok(Answer(List::new(items, &page, |i| i.id.to_string())))
}

/// One invite with all its uses.
#[utoipa::path(get, path = "/api/v1/invites/{id}", tag = "invites",
    params(("id" = String, Path, description = "Its id, not its code")),
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

/// Opens an invite again: its code works once more.
#[utoipa::path(post, path = "/api/v1/invites/{id}/reopen", tag = "invites",
    params(("id" = String, Path, description = "Its id, not its code")),
    request_body = Option<InviteLife>,
    responses((status = 200, body = Invite, description = "Open again"), Problem))]
pub(crate) async fn invite_reopen(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(wanted): OptionalJson<InviteLife>,
) -> Result<Answer<Invite>, Problem> {
    let id = id("invite", &text)?;
    let life = invite::life("expires_in", wanted.expires_in)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::invite::get(&mut tx, caller.scope(), id).await?;
    caller.must_be_owner()?;
    let invite = store::invite::reopen(&mut tx, caller.scope(), id, life).await?;
    tx.commit().await?;
    view(&mut app.db.read().await?, invite, app.db.now()).await.map(Answer)
}

/// Ends an invite before its time.
#[utoipa::path(delete, path = "/api/v1/invites/{id}", tag = "invites",
    params(("id" = String, Path, description = "Its id, not its code")),
    responses((status = 204, description = "Its code no longer works"), Problem))]
pub(crate) async fn invite_revoke(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = id("invite", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::invite::get(&mut tx, caller.scope(), id).await?;
    caller.must_be_owner()?;
    store::invite::revoke(&mut tx, caller.scope(), id).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tells how a code is doing.
#[utoipa::path(post, path = "/api/v1/invites/check", tag = "invites", security(()),
    request_body = InviteCode,
    responses((status = 200, body = InviteStatus, description = "Its status"), Problem))]
pub(crate) async fn invite_check(
    State(app): State<App>,
    Json(wanted): Json<InviteCode>,
) -> Result<Answer<InviteStatus>, Problem> {
    status(&app, wanted.code).await.map(Answer)
}

/// Uses a code: makes a user in the organization that invites.
#[utoipa::path(post, path = "/api/v1/invites/redeem", tag = "invites", security(()),
    request_body = Redemption,
    responses((status = 201, body = User, description = "Joined"), Problem))]
pub(crate) async fn invite_redeem(
    State(app): State<App>,
    Json(new): Json<Redemption>,
) -> Result<(StatusCode, Answer<User>), Problem> {
    let display_name = new.display_name.as_deref();
    let wanted = Wanted { username: &new.username, password: &new.password, display_name };
    let user = account::redeem(&app, &new.code, &wanted).await?;
    Ok((StatusCode::CREATED, Answer(user.into())))
}

/// How a code is doing, for whoever bears it.
pub(crate) async fn status(app: &App, code: String) -> Result<InviteStatus, Problem> {
    let invite = account::invite_of(app, &code).await?;
    let mut read = app.db.read().await?;
    let organization =
        store::organization::get(&mut read, Scope::All, invite.organization_id).await?;
    let shown = view(&mut read, invite, app.db.now()).await?;
    Ok(InviteStatus {
        code,
        active: shown.active,
        expired: shown.expired,
        used_by: shown.used_by,
        expires_at: shown.expires_at,
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
