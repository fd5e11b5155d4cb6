//! Plans: the actions that a request would perform.

use axum::Json as Answer;
use axum::extract::Path;
use engine::environment::{Change, plan_change, plan_destroy, plan_new};
use wire::environment::plan::{Plan, PlanRequest};
use wire::environment::request::NewEnvironment;

use super::spec;
use crate::Problem;
use crate::body::{Json, OptionalJson};
use crate::caller::Call;
use crate::page::id;

/// Plans a new environment without creating it. The name is optional.
#[utoipa::path(post, path = "/api/v1/environments/plan", tag = "environments", request_body = NewEnvironment,
    responses((status = 200, body = Plan, description = "Plan"), Problem))]
pub(crate) async fn environment_plan_new(
    Call(app, caller): Call,
    Json(new): Json<NewEnvironment>,
) -> Result<Answer<Plan>, Problem> {
    let (spec, _) = spec::checked(new, app.db.now())?;
    let (owner, mut read) = (caller.user.organization_id, app.db.read().await?);
    let planned = plan_new(&mut read, owner, &spec.templates, &spec.parameters).await?;
    Ok(Answer(planned.plan.into()))
}

/// Plans a change or the destruction of an environment without applying it.
#[utoipa::path(post, path = "/api/v1/environments/{id}/plan", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")), request_body = Option<PlanRequest>,
    responses((status = 200, body = Plan, description = "Plan"), Problem))]
pub(crate) async fn environment_plan(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(request): OptionalJson<PlanRequest>,
) -> Result<Answer<Plan>, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let environment = store::environment::get(&mut read, caller.scope(), id).await?;
    let is_changed = request.templates.is_some() || !request.parameters.is_empty();
    if request.destroy && is_changed {
        let rule = "must not be combined with templates or parameters";
        return Err(Problem::field("destroy", rule));
    }
    if request.destroy {
        return Ok(Answer(plan_destroy(&mut read, &environment).await?.into()));
    }
    let (templates, parameters) = (request.templates, request.parameters);
    let change = Change { templates, parameters, ..Change::default() };
    Ok(Answer(plan_change(&mut read, &environment, &change).await?.plan.into()))
}
