//! Templates, and what is different between their versions.

use std::collections::BTreeMap;

use model::template::{self, Published};
use model::{EnvironmentId, OrganizationId, TemplateId, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::environment::plan::{Step, Summary};

/// A template. What it says is left out in lists.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Template {
    /// Its id.
    #[schema(value_type = String)]
    pub id: TemplateId,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is called: `name@version`.
    pub reference: String,
    /// Who owns it; nobody when it is shared by all.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Is it shared by all organizations?
    pub shared: bool,
    /// What it is for.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// The commit that it came from.
    pub commit: Option<String>,
    /// Changes exactly when what it says does, or one of its files.
    pub hash: String,
    /// Since when nothing new is made from it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deprecated_at: Option<Time>,
    /// Why, and what to use instead.
    pub deprecated_why: Option<String>,
    /// Who published it: `user:<id>`.
    pub created_by: String,
    /// When it was published.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// What can be set, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Value>,
    /// Resources of other templates of the same environment that this one refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<String>>,
    /// Named parts of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub groups: Option<Value>,
    /// Its resources, as it declares them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub resources: Option<Value>,
    /// What runs after resources are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub actions: Option<Value>,
    /// Where users of the environment begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_points: Option<Vec<String>>,
    /// What was published with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<File>>,
}

impl From<Published> for Template {
    /// Without what it says.
    fn from(of: Published) -> Self {
        Self {
            id: of.id,
            reference: of.reference(),
            name: of.template.name,
            version: of.template.version,
            organization_id: of.organization_id,
            shared: of.organization_id.is_none(),
            description: of.template.description,
            tags: of.template.tags,
            commit: of.template.commit,
            hash: of.hash,
            deprecated_at: of.deprecated_at,
            deprecated_why: of.deprecated_why,
            created_by: of.created_by,
            created_at: of.created_at,
            parameters: None,
            needs: None,
            groups: None,
            resources: None,
            actions: None,
            entry_points: None,
            files: None,
        }
    }
}

impl Template {
    /// With what it says, and its files.
    pub fn complete(mut of: Published, files: Vec<File>) -> Self {
        let says = &mut of.template;
        Self {
            parameters: Some(json!(says.parameters)),
            needs: Some(std::mem::take(&mut says.needs)),
            groups: Some(json!(says.groups)),
            resources: Some(json!(says.resources)),
            actions: Some(json!(says.actions)),
            entry_points: Some(std::mem::take(&mut says.entry_points)),
            files: Some(files),
            ..Self::from(of)
        }
    }
}

/// A file that was published with a template.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = TemplateFile)]
pub struct File {
    /// Where it is.
    pub path: String,
    /// How large it is.
    pub size_bytes: i64,
}

/// Why a template should not be used any more.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Deprecation {
    /// Why, and what to use instead.
    pub why: String,
}

/// What is different between two versions of a template.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TemplateDiff {
    /// The template's name.
    pub name: String,
    /// The one version.
    pub from: String,
    /// The other one.
    pub to: String,
    /// What is different, by the fields' names.
    pub changes: Vec<FieldChange>,
}

/// A field that is different.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Which field: `resources.web.with.image`.
    pub path: String,
    /// What it was; null if it was not there.
    pub from: Value,
    /// What it is; null if it is gone.
    pub to: Value,
}

impl From<template::Change> for FieldChange {
    fn from(of: template::Change) -> Self {
        let (from, to) = (of.from.unwrap_or_default(), of.to.unwrap_or_default());
        Self { path: of.path, from, to }
    }
}

/// What a new version of a template would do to environments.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Impact {
    /// The template's name.
    pub name: String,
    /// The version that they are made from.
    pub from: String,
    /// The version that they would be made from.
    pub to: String,
    /// The living environments that are made from it, the first 500.
    pub environments: Vec<Touched>,
}

/// What a new version would do to one environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Touched {
    /// The environment's id.
    #[schema(value_type = String)]
    pub id: EnvironmentId,
    /// Its name.
    pub name: String,
    /// Where it is on its way.
    pub status: String,
    /// The plan's hash, if it can be planned.
    pub hash: Option<String>,
    /// How many resources would be changed in which way.
    pub summary: Option<Summary>,
    /// What would be done; resources that stay are left out.
    pub steps: Vec<Step>,
    /// Why it can't be moved to that version; null if it can.
    pub problem: Option<String>,
}
