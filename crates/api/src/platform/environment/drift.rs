//! What of an environment is not as it was made.

use axum::Json as Answer;
use axum::extract::{Path, State};
use model::Time;
use model::resource::{self, Status};
use serde::Serialize;
use utoipa::ToSchema;

use crate::caller::Caller;
use crate::page::id;
use crate::platform::resource::shape::Difference;
use crate::{App, Problem};

/// What is not as it was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct Drift {
    /// Is anything not as it was made?
    drifted: bool,
    /// The resources that are not, or have something beside them that Paddock did not make.
    resources: Vec<Drifted>,
}

/// A resource that is not as it was made.
#[derive(Serialize, ToSchema)]
#[schema(as = DriftedResource)]
pub(crate) struct Drifted {
    /// Its name.
    name: String,
    /// Where it is on its way.
    #[schema(value_type = String)]
    status: Status,
    /// What is different, field by field.
    differences: Vec<Difference>,
    /// What is there and was not made by Paddock.
    unexpected: Vec<String>,
    /// When it was last looked at.
    #[schema(value_type = Option<String>, format = DateTime)]
    observed_at: Option<Time>,
}

impl From<resource::Resource> for Drifted {
    fn from(of: resource::Resource) -> Self {
        Self {
            name: of.node.name,
            status: of.status,
            differences: of.drift.into_iter().map(Difference::from).collect(),
            unexpected: of.unexpected,
            observed_at: of.observed_at,
        }
    }
}

/// What of an environment is not as it was made, as it was last seen.
#[utoipa::path(get, path = "/api/v1/environments/{id}/drift", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Drift, description = "What is different"), Problem))]
pub(crate) async fn environment_drift(
    State(app): State<App>,
    caller: Caller,
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
