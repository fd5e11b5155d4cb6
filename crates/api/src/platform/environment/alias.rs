//! The same calls under the paths that clients of the first provisioner know: `/api/v1/environment`.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use wire::environment::Environment;
use wire::environment::request::NewEnvironment;

use super::{EnvironmentFilter, ask};
use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::idempotency::Once;
use crate::page::{List, Query, Slice};

/// Asks for an environment, as `POST /api/v1/environments` does.
#[utoipa::path(put, path = "/api/v1/environment", tag = "environments", request_body = NewEnvironment,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 202, body = Environment, description = "Asked for"), Problem))]
pub(crate) async fn environment_put(
    call: Call,
    once: Once,
    new: Json<NewEnvironment>,
) -> Result<Response, Problem> {
    super::environment_create(call, once, new).await
}

/// Lists environments, as `GET /api/v1/environments` does.
#[utoipa::path(get, path = "/api/v1/environment", tag = "environments", params(EnvironmentFilter, Slice),
    responses((status = 200, body = List<Environment>, description = "A part of the list"), Problem))]
pub(crate) async fn environment_list_alias(
    call: Call,
    filter: Query<EnvironmentFilter>,
    slice: Query<Slice>,
) -> Result<Answer<List<Environment>>, Problem> {
    super::environment_list(call, filter, slice).await
}

/// One environment, as `GET /api/v1/environments/{id}` answers.
#[utoipa::path(get, path = "/api/v1/environment/{id}", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Environment, description = "The environment"), Problem))]
pub(crate) async fn environment_get_alias(
    call: Call,
    id: Path<String>,
) -> Result<Response, Problem> {
    super::environment_get(call, id).await
}

/// Has an environment be destroyed, as `DELETE /api/v1/environments/{id}` does.
#[utoipa::path(delete, path = "/api/v1/environment/{id}", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way out"), Problem))]
pub(crate) async fn environment_destroy_alias(
    call: Call,
    id: Path<String>,
) -> Result<(StatusCode, Answer<Environment>), Problem> {
    ask::environment_destroy(call, id).await
}
