//! Templates and differences between their versions.

use std::collections::BTreeMap;

use model::template::{self, Published};
use model::{EnvironmentId, OrganizationId, TemplateId, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::environment::plan::{Step, Summary};

/// A template. Lists omit its content.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Template {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: TemplateId,
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Reference: `name@version`.
    pub reference: String,
    /// Owning organization; null when shared by all organizations.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Whether all organizations share it.
    pub shared: bool,
    /// Description.
    pub description: String,
    /// User-defined tags.
    pub tags: BTreeMap<String, String>,
    /// Commit that the template was published from.
    pub commit: Option<String>,
    /// Hash of the content and the files.
    pub hash: String,
    /// Time of the deprecation. A deprecated template cannot be used for new environments.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deprecated_at: Option<Time>,
    /// Reason for the deprecation and what to use instead.
    pub deprecated_why: Option<String>,
    /// Publisher: `user:<id>`.
    pub created_by: String,
    /// Publication time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Parameters by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Value>,
    /// Resources of other templates in the same environment that this template refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<String>>,
    /// Named groups of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub groups: Option<Value>,
    /// Resources, as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub resources: Option<Value>,
    /// Actions that run after the resources are applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub actions: Option<Value>,
    /// Entry points for users of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_points: Option<Vec<String>>,
    /// Files published with the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<File>>,
}

impl From<Published> for Template {
    /// Converts without the content.
    fn from(published: Published) -> Self {
        Self {
            id: published.id,
            reference: published.reference(),
            name: published.template.name,
            version: published.template.version,
            organization_id: published.organization_id,
            shared: published.organization_id.is_none(),
            description: published.template.description,
            tags: published.template.tags,
            commit: published.template.commit,
            hash: published.hash,
            deprecated_at: published.deprecated_at,
            deprecated_why: published.deprecated_why,
            created_by: published.created_by,
            created_at: published.created_at,
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
    /// Converts with the content and the files.
    pub fn complete(mut published: Published, files: Vec<File>) -> Self {
        let content = &mut published.template;
        Self {
            parameters: Some(json!(content.parameters)),
            needs: Some(std::mem::take(&mut content.needs)),
            groups: Some(json!(content.groups)),
            resources: Some(json!(content.resources)),
            actions: Some(json!(content.actions)),
            entry_points: Some(std::mem::take(&mut content.entry_points)),
            files: Some(files),
            ..Self::from(published)
        }
    }
}

/// A file published with a template.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = TemplateFile)]
pub struct File {
    /// Path of the file.
    pub path: String,
    /// Size in bytes.
    pub size_bytes: i64,
}

/// Deprecation of a template.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Deprecation {
    /// Reason for the deprecation and what to use instead.
    pub why: String,
}

/// Differences between two versions of a template.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TemplateDiff {
    /// Template name.
    pub name: String,
    /// Old version.
    pub from: String,
    /// New version.
    pub to: String,
    /// Changed fields, ordered by path.
    pub changes: Vec<FieldChange>,
}

/// A changed field.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Path of the field: `resources.web.with.image`.
    pub path: String,
    /// Old value; null if the field was absent.
    pub from: Value,
    /// New value; null if the field is absent.
    pub to: Value,
}

impl From<template::Change> for FieldChange {
    fn from(published: template::Change) -> Self {
        let (from, to) = (published.from.unwrap_or_default(), published.to.unwrap_or_default());
        Self { path: published.path, from, to }
    }
}

/// Impact of a new template version on environments.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Impact {
    /// Template name.
    pub name: String,
    /// Current version.
    pub from: String,
    /// New version.
    pub to: String,
    /// Live environments created from the template; at most 500.
    pub environments: Vec<AffectedEnvironment>,
}

/// Impact of a new template version on one environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Touched)]
pub struct AffectedEnvironment {
    /// ID of the environment.
    #[schema(value_type = String)]
    pub id: EnvironmentId,
    /// Name of the environment.
    pub name: String,
    /// Status.
    pub status: String,
    /// Hash of the plan, if planning succeeded.
    pub hash: Option<String>,
    /// Number of resources by action.
    pub summary: Option<Summary>,
    /// Planned steps; unchanged resources are omitted.
    pub steps: Vec<Step>,
    /// Reason why the environment cannot be updated to that version; null if it can.
    pub problem: Option<String>,
}
