//! Drift of environments.

use axum::Json as Answer;
use axum::extract::Path;
use wire::environment::drift::{Drift, Drifted};

use crate::Problem;
use crate::caller::Call;
use crate::page::id;

/// Returns the drift of an environment as of the last observation.
#[utoipa::path(get, path = "/api/v1/environments/{id}/drift", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 200, body = Drift, description = "Drift"), Problem))]
pub(crate) async fn environment_drift(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Drift>, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let found = store::environment::get(&mut read, caller.scope(), id).await?;
    let mut resources = store::resource::list_of_environment(&mut read, found.id).await?;
    resources.retain(|resource| !resource.drift.is_empty() || !resource.unexpected.is_empty());
    let drifted = resources.iter().any(|resource| !resource.drift.is_empty());
    Ok(Answer(Drift { drifted, resources: resources.into_iter().map(Drifted::from).collect() }))
}
