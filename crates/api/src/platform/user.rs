//! Users of an organization.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use model::access::{Action, SubjectKind, Verb};
use model::user::{Access, Role};
use model::{UserId, name, user};
use serde::Deserialize;
use utoipa::IntoParams;
use wire::user::{User, UserChange};

use crate::body::Json;
use crate::caller::{Call, Caller, From as Address};
use crate::etag::{IfMatch, etag};
use crate::page::{List, PageQuery, Query, id};
use crate::password::Lane;
use crate::{App, Problem, account};

/// Filter for users.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UserQuery {
    /// Only the user with this name, ignoring case; for the platform administrator in all
    /// organizations.
    username: Option<String>,
}

/// Lists the users of the caller's organization, without service accounts.
#[utoipa::path(get, path = "/api/v1/users", tag = "users", params(PageQuery, UserQuery),
    responses((status = 200, body = List<User>, description = "A page of the list"), Problem))]
pub(crate) async fn user_list(
    Call(app, caller): Call,
    Query(paging): Query<PageQuery>,
    Query(filter): Query<UserQuery>,
) -> Result<Answer<List<User>>, Problem> {
    let page = paging.page()?;
    let mut read = app.db.read().await?;
    let found = match filter.username.as_deref() {
        None => store::user::list(&mut read, caller.own(), &page).await?,
        Some(name) => match user::username("username", name) {
            Ok(name) => store::user::list_by_name(&mut read, caller.scope(), &name).await?,
            // An invalid name belongs to no user.
            Err(_) => Vec::new(),
        },
    };
    let items = found.into_iter().map(User::from).collect();
    Ok(Answer(List::new(items, &page, |u| u.id.to_string())))
}

/// Returns a user; `me` is the caller.
#[utoipa::path(get, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = String, Path, description = "User ID, or `me`")),
    responses((status = 200, body = User, description = "The user"), Problem))]
pub(crate) async fn user_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = user_id(&caller, &text)?;
    let found = store::user::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok((etag(found.generation), Answer(User::from(found))))
}

/// Updates a user's display name, role, access or password.
#[utoipa::path(patch, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = String, Path, description = "User ID, or `me`"),
        ("If-Match" = Option<String>, Header, description = "ETag; the update fails if it does not match")),
    request_body = UserChange,
    responses((status = 200, body = User, description = "Updated"), Problem))]
pub(crate) async fn user_update(
    Call(app, caller): Call,
    from: Address,
    Path(text): Path<String>,
    if_match: IfMatch,
    Json(change): Json<UserChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = user_id(&caller, &text)?;
    let is_self = id == caller.user.id;
    if !is_self {
        // Check the existence first: users of other organizations are not found.
        store::user::get(&mut app.db.read().await?, caller.scope(), id).await?;
    }
    if change.role.is_some() {
        caller.may(Action::new(SubjectKind::User, Verb::Update))?;
    }
    let access = new_access(&caller, change.access.as_deref())?;
    let role = change.role.as_deref().map(str::parse::<Role>).transpose()?;
    let display_name = change.display_name.as_deref();
    let display_name =
        display_name.map(|text| name::line("display_name", text, 200)).transpose()?;
    let password_hash = new_password(&app, &caller, &change, is_self, from).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if_match.check(store::user::get(&mut tx, caller.scope(), id).await?.generation)?;
    let change = store::user::Change { display_name, role, access, password_hash };
    let changed = store::user::set(&mut tx, caller.scope(), id, &change).await?;
    tx.commit().await?;
    app.cache.clear();
    Ok((etag(changed.generation), Answer(User::from(changed))))
}

/// Returns the new access, which only the platform administrator sets.
fn new_access(caller: &Caller, text: Option<&str>) -> Result<Option<Access>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let Ok(access @ (Access::Tenant | Access::Auditor)) = text.parse() else {
        return Err(Problem::field("access", "must be one of tenant, auditor"));
    };
    caller.may(Action::new(SubjectKind::Platform, Verb::Administer))?;
    Ok(Some(access))
}

/// Returns the hash of the new password, if the caller may set one.
async fn new_password(
    app: &App,
    caller: &Caller,
    change: &UserChange,
    is_self: bool,
    from: Address,
) -> Result<Option<String>, Problem> {
    let Some(password) = &change.password else { return Ok(None) };
    if !is_self && !caller.is_admin() {
        return Err(Problem::forbidden("Only the user may change this password."));
    }
    user::password("password", password, app.settings.password_min)?;
    if is_self {
        let current = change.current_password.as_deref().ok_or_else(|| {
            Problem::field("current_password", "is required to set a new password")
        })?;
        account::verify(app, &caller.user.username, current, from.0).await.map_err(|problem| {
            if problem.is_unauthenticated() {
                return Problem::field("current_password", "is wrong");
            }
            problem
        })?;
    }
    let permit = app.passwords.permit(Lane::Login).await?;
    app.passwords.hash(permit, app.db.entropy(), password).await.map(Some)
}

/// Removes a user from the organization and ends its sessions.
#[utoipa::path(delete, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = String, Path, description = "User ID, or `me`")),
    responses((status = 204, description = "Removed"), Problem))]
pub(crate) async fn user_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = user_id(&caller, &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    store::user::get(&mut tx, caller.scope(), id).await?;
    store::user::delete(&mut tx, caller.scope(), id).await?;
    tx.commit().await?;
    app.cache.clear();
    Ok(StatusCode::NO_CONTENT)
}

fn user_id(caller: &Caller, text: &str) -> Result<UserId, Problem> {
    if text == "me" { Ok(caller.user.id) } else { id("user", text) }
}
