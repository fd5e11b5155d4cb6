//! Placement explanations of deployments, and dry runs of new ones.

use axum::Json as Answer;
use axum::extract::Path;
use model::DeploymentId;
use model::deployment::NewDeployment;
use model::reason::StatusReason as _;
use store::organization_quota;
use wire::explain::{DeploymentExplanation, DryRun, ReplicaDryRun, ReplicaExplanation, Viewer};

use crate::caller::{Call, Caller};
use crate::page::id;
use crate::platform::organization_quota::relevant;
use crate::{App, Problem};

/// Explains the placement of a deployment: queue position, shortages and blockers.
#[utoipa::path(get, path = "/api/v1/deployments/{id}/explain", tag = "deployments",
    params(("id" = String, Path, description = "Deployment ID")),
    responses((status = 200, body = DeploymentExplanation, description = "Explanation"), Problem))]
pub(crate) async fn deployment_explain(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<DeploymentExplanation>, Problem> {
    let id: DeploymentId = id("deployment", &text)?;
    let mut read = app.db.read().await?;
    let found = store::deployment::get(&mut read, caller.scope(), id).await?;
    let (owner, defaults) = (found.organization_id, app.db.default_quotas());
    let usage = organization_quota::usage(&mut read, owner, &defaults, app.db.now()).await?;
    drop(read);
    let explanation = app.placement.explain(id).await?;
    let viewer = Viewer { organization: found.organization_id, owners: &explanation.owners };
    let replicas = explanation.replicas.into_iter();
    Ok(Answer(DeploymentExplanation {
        deployment_id: id,
        at: explanation.at,
        status: found.status.to_string(),
        status_reason: found.reason.to_string(),
        reason_code: found.reason.code().to_owned(),
        replicas: replicas.map(|replica| ReplicaExplanation::new(replica, viewer)).collect(),
        quotas: relevant(usage, &found.spec),
    }))
}

/// Returns the placement result of a new deployment without creating it.
pub(crate) async fn dry_run_placement(
    app: &App,
    caller: &Caller,
    new: &NewDeployment,
) -> Result<DryRun, Problem> {
    let organization = caller.user.organization_id;
    let mut read = app.db.read().await?;
    if let Some(id) = new.pinned_to {
        store::cluster::get(&mut read, caller.scope(), id).await?;
    }
    let mut new = new.clone();
    store::deployment::request_defaults(&mut read, organization, &mut new).await?;
    let ceiling = app.settings.limits.max_priority;
    store::organization::check_priority(&mut read, organization, new.priority, ceiling).await?;
    let (defaults, now) = (app.db.default_quotas(), app.db.now());
    let usage = organization_quota::usage(&mut read, organization, &defaults, now).await?;
    drop(read);
    let exceeded = organization_quota::refusals(&usage, &new.spec).into_iter();
    let result = app.placement.dry_run(organization, &new).await?;
    let viewer = Viewer { organization, owners: &result.owners };
    let replicas = result.replicas.into_iter();
    let replicas = replicas.map(|(number, outcome)| ReplicaDryRun::new(number, outcome, viewer));
    let exceeded_quotas = exceeded.map(Into::into).collect();
    Ok(DryRun { dry_run: true, at: result.at, replicas: replicas.collect(), exceeded_quotas })
}
