//! Denied owners: users who may not own instances.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use model::name;
use wire::denied_owner::{DeniedOwner, DeniedOwners, NewDeniedOwner};

use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::idempotency::IdempotencyKey;

/// Lists the denied owners. For the platform administrator and auditors.
#[utoipa::path(get, path = "/api/v1/admin/denied-owners", tag = "admin",
    responses((status = 200, body = DeniedOwners, description = "Complete list"), Problem))]
pub(crate) async fn denied_owner_list(Call(app, _): Call) -> Result<Answer<DeniedOwners>, Problem> {
    let found = store::denied_owner::list(&mut app.db.read().await?).await?;
    Ok(Answer(DeniedOwners { items: found.into_iter().map(DeniedOwner::from).collect() }))
}

/// Forbids a user to own instances, and deletes existing ones. For the platform administrator.
#[utoipa::path(post, path = "/api/v1/admin/denied-owners", tag = "admin", request_body = NewDeniedOwner,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 201, body = DeniedOwner, description = "Denied"), Problem))]
pub(crate) async fn denied_owner_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    Json(request): Json<NewDeniedOwner>,
) -> Result<Response, Problem> {
    let owner = name::line("owner", &request.owner, 255)?;
    let reason = name::line_or_empty("reason", &request.reason, 500)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = key.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let denied = store::denied_owner::create(&mut tx, &owner, &reason).await?;
    key.finish(&app, tx, &caller, &DeniedOwner::from(denied), ()).await
}

/// Allows a denied user to own instances again. For the platform administrator.
#[utoipa::path(delete, path = "/api/v1/admin/denied-owners/{id}", tag = "admin",
    params(("id" = String, Path, description = "Username")),
    responses((status = 204, description = "Removed from the list"), Problem))]
pub(crate) async fn denied_owner_delete(
    Call(app, caller): Call,
    Path(owner): Path<String>,
) -> Result<StatusCode, Problem> {
    if owner.chars().any(char::is_control) {
        return Err(Problem::not_found("denied owner", &owner));
    }
    let mut tx = app.db.begin(caller.actor()).await?;
    store::denied_owner::delete(&mut tx, &owner).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
