//! What users ask of environments that are there. It is written down here and carried out by workers.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use engine::environment as asking;
use engine::environment::Change;
use model::environment::{self, Reason};
use model::{Time, name};
use store::Tx;
use wire::environment::Environment;
use wire::environment::request::{AppliedChange, Extension, Repair, Repaired};

use super::{shape, taken, wish};
use crate::Problem;
use crate::body::{Json, OptionalJson};
use crate::caller::Call;

type Accepted<T> = (StatusCode, Answer<T>);

/// What shall change, and the plan that was seen.
fn checked(change: AppliedChange, now: Time) -> Result<(Change, Option<String>), Problem> {
    change.tags.as_ref().map(|tags| name::labels("tags", tags)).transpose()?;
    wish::adoptions(&change.adopt)?;
    let checked = Change {
        templates: change.templates,
        parameters: change.parameters,
        description: change.description.as_deref().map(wish::description).transpose()?,
        tags: change.tags,
        on_drift: change.on_drift.as_deref().map(wish::on_drift).transpose()?,
        destroy_at: wish::end(change.ttl.as_ref(), change.destroy_at.as_deref(), now)?,
        adopt: change.adopt,
    };
    Ok((checked, change.plan_hash))
}

/// Has an environment be changed: all that is said, or nothing.
///
/// With `plan_hash` it is refused if the world has moved since that plan.
#[utoipa::path(post, path = "/api/v1/environments/{id}/apply", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Option<AppliedChange>,
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_apply(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(change): OptionalJson<AppliedChange>,
) -> Result<Accepted<Environment>, Problem> {
    let (change, hash) = checked(change, app.db.now())?;
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::apply(&mut tx, &mut now, &change, hash.as_deref()).await?;
    accepted(tx, now).await
}

/// Sets when an environment shall be destroyed: after `ttl`, at `destroy_at`, or never (`destroy_at: null`).
#[utoipa::path(post, path = "/api/v1/environments/{id}/extend", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Extension,
    responses((status = 200, body = Environment, description = "Set"), Problem))]
pub(crate) async fn environment_extend(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<Extension>,
) -> Result<Answer<Environment>, Problem> {
    if wanted.ttl.is_none() && wanted.destroy_at.is_none() {
        return Err(Problem::field("ttl", "give ttl, or destroy_at (null means never)"));
    }
    let at = wanted.destroy_at.and_then(|end| end.0);
    let end = wish::end(wanted.ttl.as_ref(), at.as_deref(), app.db.now())?;
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::set_destroy_at(&mut tx, &mut now, end).await?;
    let shown = shape::long(&mut tx, now).await?;
    tx.commit().await?;
    Ok(Answer(shown))
}

/// Goes on with what failed.
#[utoipa::path(post, path = "/api/v1/environments/{id}/retry", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_retry(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::retry(&mut tx, &mut now).await?;
    accepted(tx, now).await
}

/// Has what goes on be stopped. It is over when the environment has failed.
#[utoipa::path(post, path = "/api/v1/environments/{id}/cancel", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_cancel(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::cancel(&mut tx, &mut now).await?;
    accepted(tx, now).await
}

/// Has all resources be looked at now, whether they are as they were made.
#[utoipa::path(post, path = "/api/v1/environments/{id}/observe", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_observe(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, now) = taken(&app, &caller, &text).await?;
    asking::observe(&mut tx, &now).await?;
    accepted(tx, now).await
}

/// Mends resources that are not as they were made.
#[utoipa::path(post, path = "/api/v1/environments/{id}/repair", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Option<Repair>,
    responses((status = 202, body = Repaired, description = "On its way"), Problem))]
pub(crate) async fn environment_repair(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(wanted): OptionalJson<Repair>,
) -> Result<Accepted<Repaired>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    let repaired = asking::repair(&mut tx, &mut now, wanted.resources.as_deref()).await?;
    let (status, Answer(environment)) = accepted(tx, now).await?;
    Ok((status, Answer(Repaired { environment, repaired })))
}

/// Has an environment be destroyed, with all that was made for it.
#[utoipa::path(delete, path = "/api/v1/environments/{id}", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way out"), Problem))]
pub(crate) async fn environment_destroy(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    let by = Some(caller.deletes_of(now.organization_id));
    asking::destroy(&mut tx, &mut now, Reason::DeletionRequested { by }).await?;
    accepted(tx, now).await
}

async fn accepted(
    mut tx: Tx,
    now: environment::Environment,
) -> Result<Accepted<Environment>, Problem> {
    let shown = shape::long(&mut tx, now).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(shown)))
}
