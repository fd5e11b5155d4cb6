//! Plans: the actions that an apply would perform.

use model::template::{self, Act};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Plan of an environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = EnvironmentPlan)]
pub struct Plan {
    /// Hash of the plan. It changes with the desired and the observed state. Pass it as `plan_hash`
    /// to apply exactly this plan.
    pub hash: String,
    /// Number of resources by action.
    pub summary: Summary,
    /// Steps in dependency order.
    pub steps: Vec<Step>,
}

/// Number of resources by action.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanSummary)]
pub struct Summary {
    /// Resources to create.
    pub create: u64,
    /// Resources to update in place.
    pub update: u64,
    /// Resources to destroy and recreate.
    pub replace: u64,
    /// Resources to destroy.
    pub destroy: u64,
    /// Unchanged resources.
    pub nothing: u64,
}

/// A planned action on one resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanStep)]
pub struct Step {
    /// Resource name.
    pub name: String,
    /// Executor that applies the resource.
    pub executor: String,
    /// Action: `create`, `update`, `replace`, `destroy` or `nothing`.
    pub act: String,
    /// Reason for the action.
    pub reason: String,
    /// Resources whose steps must finish first.
    pub after: Vec<String>,
}

impl From<template::Step> for Step {
    fn from(step: template::Step) -> Self {
        Self {
            name: step.name,
            executor: step.executor.to_string(),
            act: step.act.to_string(),
            reason: step.reason,
            after: step.after,
        }
    }
}

impl From<&template::Plan> for Summary {
    fn from(plan: &template::Plan) -> Self {
        let mut summary = Self::default();
        for step in &plan.steps {
            *match step.act {
                Act::Create => &mut summary.create,
                Act::Update => &mut summary.update,
                Act::Replace => &mut summary.replace,
                Act::Destroy => &mut summary.destroy,
                Act::Nothing => &mut summary.nothing,
            } += 1;
        }
        summary
    }
}

impl From<template::Plan> for Plan {
    fn from(plan: template::Plan) -> Self {
        let summary = Summary::from(&plan);
        Self { hash: plan.hash, summary, steps: plan.steps.into_iter().map(Step::from).collect() }
    }
}

/// A change to plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PlannedChange)]
pub struct PlanRequest {
    /// Templates; unchanged if omitted.
    pub templates: Option<Vec<String>>,
    /// Parameter values to set; null restores the default. Omitted parameters keep their value.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// Whether to plan the destruction of the environment.
    #[serde(default)]
    pub destroy: bool,
}
