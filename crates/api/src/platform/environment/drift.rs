//! What of an environment is not as it was made.

use axum::Json as Answer;
use axum::extract::Path;
use wire::environment::drift::{Drift, Drifted};

use crate::Problem;
use crate::caller::Call;
use crate::page::id;

/// What of an environment is not as it was made, as it was last seen.
#[utoipa::path(get, path = "/api/v1/environments/{id}/drift", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Drift, description = "What is different"), Problem))]
pub(crate) async fn environment_drift(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Drift>, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let found = store::environment::get(&mut read, caller.scope(), id).await?;
    let mut all = store::resource::of(&mut read, found.id).await?;
    all.retain(|one| !one.drift.is_empty() || !one.unexpected.is_empty());
    let drifted = all.iter().any(|one| !one.drift.is_empty());
    Ok(Answer(Drift { drifted, resources: all.into_iter().map(Drifted::from).collect() }))
}
