//! Environment commands. They are recorded here and executed by workers.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use engine::environment as commands;
use engine::environment::Change;
use model::environment::{self, Reason};
use model::{Time, name};
use store::Tx;
use wire::environment::Environment;
use wire::environment::request::{ApplyRequest, ExtendRequest, RepairRequest, RepairResponse};

use super::{adoption, locked, shape, spec};
use crate::Problem;
use crate::body::{Json, OptionalJson};
use crate::caller::Call;

type Accepted<T> = (StatusCode, Answer<T>);

/// Validates a change and returns it with the hash of the reviewed plan.
fn checked(change: ApplyRequest, now: Time) -> Result<(Change, Option<String>), Problem> {
    change.tags.as_ref().map(|tags| name::labels("tags", tags)).transpose()?;
    spec::adoptions(&change.adopt)?;
    let checked = Change {
        templates: change.templates,
        parameters: change.parameters,
        description: change.description.as_deref().map(spec::description).transpose()?,
        tags: change.tags,
        on_drift: change.on_drift.as_deref().map(spec::on_drift).transpose()?,
        destroy_at: spec::end(change.ttl.as_ref(), change.destroy_at.as_deref(), now)?,
        adopt: change.adopt,
    };
    Ok((checked, change.plan_hash))
}

/// Applies a change to an environment: all of it or nothing.
///
/// With `plan_hash`, the request fails if the current plan differs.
#[utoipa::path(post, path = "/api/v1/environments/{id}/apply", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")), request_body = Option<ApplyRequest>,
    responses((status = 202, body = Environment, description = "Accepted"), Problem))]
pub(crate) async fn environment_apply(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(change): OptionalJson<ApplyRequest>,
) -> Result<Accepted<Environment>, Problem> {
    let (change, hash) = checked(change, app.db.now())?;
    let (mut tx, mut environment) = locked(&app, &caller, &text).await?;
    commands::apply(&mut tx, &mut environment, &change, hash.as_deref()).await?;
    adoption::must_be_allowed(&app, &mut tx, &caller, &environment, &change.adopt).await?;
    accepted(tx, environment).await
}

/// Sets the end of life of an environment: after `ttl`, at `destroy_at`, or never (`destroy_at:
/// null`).
#[utoipa::path(post, path = "/api/v1/environments/{id}/extend", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")), request_body = ExtendRequest,
    responses((status = 200, body = Environment, description = "End of life set"), Problem))]
pub(crate) async fn environment_extend(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<ExtendRequest>,
) -> Result<Answer<Environment>, Problem> {
    if request.ttl.is_none() && request.destroy_at.is_none() {
        return Err(Problem::field("ttl", "is required, or destroy_at (null for never)"));
    }
    let at = request.destroy_at.and_then(|end| end.0);
    let end = spec::end(request.ttl.as_ref(), at.as_deref(), app.db.now())?;
    let (mut tx, mut environment) = locked(&app, &caller, &text).await?;
    commands::set_destroy_at(&mut tx, &mut environment, end).await?;
    let response = shape::with_resources(&mut tx, environment).await?;
    tx.commit().await?;
    Ok(Answer(response))
}

/// Retries the failed operation of an environment.
#[utoipa::path(post, path = "/api/v1/environments/{id}/retry", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 202, body = Environment, description = "Accepted"), Problem))]
pub(crate) async fn environment_retry(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut environment) = locked(&app, &caller, &text).await?;
    commands::retry(&mut tx, &mut environment).await?;
    accepted(tx, environment).await
}

/// Cancels the running operation of an environment.
///
/// The environment is `failed` once the operation has stopped.
#[utoipa::path(post, path = "/api/v1/environments/{id}/cancel", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 202, body = Environment, description = "Accepted"), Problem))]
pub(crate) async fn environment_cancel(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut environment) = locked(&app, &caller, &text).await?;
    commands::cancel(&mut tx, &mut environment).await?;
    accepted(tx, environment).await
}

/// Checks all resources of an environment for drift.
#[utoipa::path(post, path = "/api/v1/environments/{id}/observe", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 202, body = Environment, description = "Accepted"), Problem))]
pub(crate) async fn environment_observe(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, environment) = locked(&app, &caller, &text).await?;
    commands::observe(&mut tx, &environment).await?;
    accepted(tx, environment).await
}

/// Repairs drifted resources of an environment.
#[utoipa::path(post, path = "/api/v1/environments/{id}/repair", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")), request_body = Option<RepairRequest>,
    responses((status = 202, body = RepairResponse, description = "Accepted"), Problem))]
pub(crate) async fn environment_repair(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(request): OptionalJson<RepairRequest>,
) -> Result<Accepted<RepairResponse>, Problem> {
    let (mut tx, mut environment) = locked(&app, &caller, &text).await?;
    let repaired =
        commands::repair(&mut tx, &mut environment, request.resources.as_deref()).await?;
    let (status, Answer(environment)) = accepted(tx, environment).await?;
    Ok((status, Answer(RepairResponse { environment, repaired })))
}

/// Destroys an environment and all of its resources.
#[utoipa::path(delete, path = "/api/v1/environments/{id}", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 202, body = Environment, description = "Destruction accepted"), Problem))]
pub(crate) async fn environment_destroy(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut environment) = locked(&app, &caller, &text).await?;
    let by = Some(caller.deletion_by(environment.organization_id));
    commands::destroy(&mut tx, &mut environment, Reason::DeletionRequested { by }).await?;
    accepted(tx, environment).await
}

async fn accepted(
    mut tx: Tx,
    environment: environment::Environment,
) -> Result<Accepted<Environment>, Problem> {
    let response = shape::with_resources(&mut tx, environment).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(response)))
}
