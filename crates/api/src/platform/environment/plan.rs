//! Plans: what would be done, before anything is.

use axum::Json as Answer;
use axum::extract::{Path, State};
use engine::environment::{Change, plan_change, plan_end, plan_new};
use model::template::{self, Act, Executor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::wish::Wanted;
use crate::body::{Json, OptionalJson};
use crate::caller::Caller;
use crate::page::id;
use crate::{App, Problem};

/// What would be done.
#[derive(Serialize, ToSchema)]
#[schema(as = EnvironmentPlan)]
pub(crate) struct Plan {
    /// Names this plan: another world or another wish has another one. Give it as `plan_hash`, and nothing
    /// else is done.
    hash: String,
    /// How many resources are changed in which way.
    summary: Summary,
    /// What is done to each resource, in an order in which it can be done.
    steps: Vec<Step>,
}

/// How many resources are changed in which way.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = PlanSummary)]
pub(crate) struct Summary {
    /// They are made.
    create: u64,
    /// They are changed where they are.
    update: u64,
    /// They are destroyed and made again.
    replace: u64,
    /// They are destroyed.
    destroy: u64,
    /// They stay as they are.
    nothing: u64,
}

/// What is done to one resource.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanStep)]
pub(crate) struct Step {
    /// The resource's name.
    name: String,
    /// Who carries it out.
    #[schema(value_type = String)]
    executor: Executor,
    /// What is done: `create`, `update`, `replace`, `destroy` or `nothing`.
    #[schema(value_type = String)]
    act: Act,
    /// Why.
    reason: String,
    /// The resources whose steps come first.
    after: Vec<String>,
}

impl Summary {
    pub(crate) fn of(plan: &template::Plan) -> Self {
        let mut sum = Self::default();
        for step in &plan.steps {
            *match step.act {
                Act::Create => &mut sum.create,
                Act::Update => &mut sum.update,
                Act::Replace => &mut sum.replace,
                Act::Destroy => &mut sum.destroy,
                Act::Nothing => &mut sum.nothing,
            } += 1;
        }
        sum
    }
}

impl From<&template::Step> for Step {
    fn from(step: &template::Step) -> Self {
        Self {
            name: step.name.clone(),
            executor: step.executor,
            act: step.act,
            reason: step.reason.clone(),
            after: step.after.clone(),
        }
    }
}

impl From<template::Plan> for Plan {
    fn from(plan: template::Plan) -> Self {
        let (summary, steps) = (Summary::of(&plan), plan.steps.iter().map(Step::from).collect());
        Self { hash: plan.hash, summary, steps }
    }
}

/// What would be done for a new environment. Nothing is changed; its name may be left out.
#[utoipa::path(post, path = "/api/v1/environments/plan", tag = "environments", request_body = Wanted,
    responses((status = 200, body = Plan, description = "What would be done"), Problem))]
pub(crate) async fn environment_plan_new(
    State(app): State<App>,
    caller: Caller,
    Json(wanted): Json<Wanted>,
) -> Result<Answer<Plan>, Problem> {
    let (wish, _) = wanted.checked(app.db.now())?;
    let (owner, mut read) = (caller.user.organization_id, app.db.read().await?);
    let drawn = plan_new(&mut read, owner, &wish.templates, &wish.parameters).await?;
    Ok(Answer(drawn.plan.into()))
}

/// What would change.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PlannedChange)]
pub(crate) struct Planned {
    /// The templates that it shall be made from, if others.
    templates: Option<Vec<String>>,
    /// What is set anew; null takes the default again. What is not named stays.
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: Map<String, Value>,
    /// `true`: the plan of its end.
    #[serde(default)]
    destroy: bool,
}

/// What would be done for a change of an environment, or for its end. Nothing is changed.
#[utoipa::path(post, path = "/api/v1/environments/{id}/plan", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Option<Planned>,
    responses((status = 200, body = Plan, description = "What would be done"), Problem))]
pub(crate) async fn environment_plan(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    OptionalJson(wanted): OptionalJson<Planned>,
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
