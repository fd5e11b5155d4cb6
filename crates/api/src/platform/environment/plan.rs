//! Plans: what would be done, before anything is.

use axum::Json as Answer;
use axum::extract::Path;
use engine::environment::{Change, plan_change, plan_end, plan_new};
use wire::environment::plan::{Plan, PlannedChange};
use wire::environment::request::NewEnvironment;

use super::wish;
use crate::Problem;
use crate::body::{Json, OptionalJson};
use crate::caller::Call;
use crate::page::id;

/// What would be done for a new environment. Nothing is changed; its name may be left out.
#[utoipa::path(post, path = "/api/v1/environments/plan", tag = "environments", request_body = NewEnvironment,
    responses((status = 200, body = Plan, description = "What would be done"), Problem))]
pub(crate) async fn environment_plan_new(
    Call(app, caller): Call,
    Json(new): Json<NewEnvironment>,
) -> Result<Answer<Plan>, Problem> {
    let (wish, _) = wish::checked(new, app.db.now())?;
    let (owner, mut read) = (caller.user.organization_id, app.db.read().await?);
    let drawn = plan_new(&mut read, owner, &wish.templates, &wish.parameters).await?;
    Ok(Answer(drawn.plan.into()))
}

/// What would be done for a change of an environment, or for its end. Nothing is changed.
#[utoipa::path(post, path = "/api/v1/environments/{id}/plan", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Option<PlannedChange>,
    responses((status = 200, body = Plan, description = "What would be done"), Problem))]
pub(crate) async fn environment_plan(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(wanted): OptionalJson<PlannedChange>,
) -> Result<Answer<Plan>, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let now = store::environment::get(&mut read, caller.scope(), id).await?;
    let is_changed = wanted.templates.is_some() || !wanted.parameters.is_empty();
    if wanted.destroy && is_changed {
        let rule = "is the plan of its end: leave templates and parameters out";
        return Err(Problem::field("destroy", rule));
    }
    if wanted.destroy {
        return Ok(Answer(plan_end(&mut read, &now).await?.into()));
    }
    let (templates, parameters) = (wanted.templates, wanted.parameters);
    let change = Change { templates, parameters, ..Change::default() };
    Ok(Answer(plan_change(&mut read, &now, &change).await?.plan.into()))
}
