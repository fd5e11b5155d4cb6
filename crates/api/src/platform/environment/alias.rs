//! Aliases of the environment endpoints for clients of the first provisioner:
//! `/api/v1/environment`.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use wire::environment::Environment;
use wire::environment::request::NewEnvironment;

use super::{EnvironmentFilter, command};
use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::idempotency::IdempotencyKey;
use crate::page::{List, PageQuery, Query};

/// Creates an environment; same as `POST /api/v1/environments`.
#[utoipa::path(put, path = "/api/v1/environment", tag = "environments", request_body = NewEnvironment,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 202, body = Environment, description = "Accepted"), Problem))]
pub(crate) async fn environment_put(
    call: Call,
    key: IdempotencyKey,
    new: Json<NewEnvironment>,
) -> Result<Response, Problem> {
    super::environment_create(call, key, new).await
}

/// Lists environments; same as `GET /api/v1/environments`.
#[utoipa::path(get, path = "/api/v1/environment", tag = "environments", params(EnvironmentFilter, PageQuery),
    responses((status = 200, body = List<Environment>, description = "A page of the list"), Problem))]
pub(crate) async fn environment_list_alias(
    call: Call,
    filter: Query<EnvironmentFilter>,
    paging: Query<PageQuery>,
) -> Result<Answer<List<Environment>>, Problem> {
    super::environment_list(call, filter, paging).await
}

/// Returns an environment; same as `GET /api/v1/environments/{id}`.
#[utoipa::path(get, path = "/api/v1/environment/{id}", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 200, body = Environment, description = "The environment"), Problem))]
pub(crate) async fn environment_get_alias(
    call: Call,
    id: Path<String>,
) -> Result<Response, Problem> {
    super::environment_get(call, id).await
}

/// Destroys an environment; same as `DELETE /api/v1/environments/{id}`.
#[utoipa::path(delete, path = "/api/v1/environment/{id}", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 202, body = Environment, description = "Destruction accepted"), Problem))]
pub(crate) async fn environment_destroy_alias(
    call: Call,
    id: Path<String>,
) -> Result<(StatusCode, Answer<Environment>), Problem> {
    command::environment_destroy(call, id).await
}
