//! Why a deployment waits, and what would happen if one were asked for.

use axum::Json as Answer;
use axum::extract::Path;
use model::DeploymentId;
use model::deployment::NewDeployment;
use model::reason::Coded as _;
use wire::explain::{DeploymentExplanation, Forecast, ReplicaExplanation, ReplicaForecast, Viewer};

use crate::caller::{Call, Caller};
use crate::page::id;
use crate::{App, Problem};

/// Explains where a deployment is: its place in the queue, what is missing where, who is in the way.
#[utoipa::path(get, path = "/api/v1/deployments/{id}/explain", tag = "deployments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = DeploymentExplanation, description = "Why it is where it is"), Problem))]
pub(crate) async fn deployment_explain(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<DeploymentExplanation>, Problem> {
    let id: DeploymentId = id("deployment", &text)?;
    let found = store::deployment::get(&mut app.db.read().await?, caller.scope(), id).await?;
    let explained = app.outlook.explain(id).await?;
    let viewer = Viewer { organization: found.organization_id, owners: &explained.owners };
    let replicas = explained.replicas.into_iter();
    Ok(Answer(DeploymentExplanation {
        deployment_id: id,
        at: explained.at,
        status: found.status.to_string(),
        status_reason: found.reason.to_string(),
        reason_code: found.reason.code().to_owned(),
        replicas: replicas.map(|replica| ReplicaExplanation::new(replica, viewer)).collect(),
    }))
}

/// What would happen if a deployment were requested now.
pub(crate) async fn forecast(
    app: &App,
    caller: &Caller,
    new: &NewDeployment,
) -> Result<Forecast, Problem> {
    if let Some(id) = new.pinned_to {
        store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    }
    let organization = caller.user.organization_id;
    let foreseen = app.outlook.foresee(organization, new).await?;
    let viewer = Viewer { organization, owners: &foreseen.owners };
    let replicas = foreseen.replicas.into_iter();
    let replicas = replicas.map(|(number, outcome)| ReplicaForecast::new(number, outcome, viewer));
    Ok(Forecast { dry_run: true, at: foreseen.at, replicas: replicas.collect() })
}
