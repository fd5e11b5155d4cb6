//! Plans: what would be done, before anything is.

use model::template::{self, Act};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What would be done.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = EnvironmentPlan)]
pub struct Plan {
    /// Names this plan: another world or another wish has another one. Give it as `plan_hash`, and nothing
    /// else is done.
    pub hash: String,
    /// How many resources are changed in which way.
    pub summary: Summary,
    /// What is done to each resource, in an order in which it can be done.
    pub steps: Vec<Step>,
}

/// How many resources are changed in which way.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanSummary)]
pub struct Summary {
    /// They are made.
    pub create: u64,
    /// They are changed where they are.
    pub update: u64,
    /// They are destroyed and made again.
    pub replace: u64,
    /// They are destroyed.
    pub destroy: u64,
    /// They stay as they are.
    pub nothing: u64,
}

/// What is done to one resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PlanStep)]
pub struct Step {
    /// The resource's name.
    pub name: String,
    /// Who carries it out.
    pub executor: String,
    /// What is done: `create`, `update`, `replace`, `destroy` or `nothing`.
    pub act: String,
    /// Why.
    pub reason: String,
    /// The resources whose steps come first.
    pub after: Vec<String>,
}

impl From<template::Step> for Step {
    fn from(of: template::Step) -> Self {
        Self {
            name: of.name,
            executor: of.executor.to_string(),
            act: of.act.to_string(),
            reason: of.reason,
            after: of.after,
        }
    }
}

impl From<&template::Plan> for Summary {
    fn from(plan: &template::Plan) -> Self {
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

impl From<template::Plan> for Plan {
    fn from(plan: template::Plan) -> Self {
        let summary = Summary::from(&plan);
        Self { hash: plan.hash, summary, steps: plan.steps.into_iter().map(Step::from).collect() }
    }
}

/// What would change.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedChange {
    /// The templates that it shall be made from, if others.
    pub templates: Option<Vec<String>>,
    /// What is set anew; null takes the default again. What is not named stays.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// `true`: the plan of its end.
    #[serde(default)]
    pub destroy: bool,
}
