//! Environments.

pub mod drift;
pub mod plan;
pub mod request;

use std::collections::BTreeMap;

use model::reason::Coded as _;
use model::{EnvironmentId, OrganizationId, Time, UserId, environment};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::resource::Resource;

/// An environment. Its resources, and where they say how they are, are left out in lists.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Environment {
    /// Its id.
    #[schema(value_type = String)]
    pub id: EnvironmentId,
    /// Who owns it.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Its name, unique in its organization.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// The templates that it is made from, `name@version`.
    pub templates: Vec<String>,
    /// What was set, without defaults.
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// What is done when a resource is not as it was made: `report` or `repair`.
    pub on_drift: String,
    /// Where it is on its way: `deploying`, `validating`, `deployed`, `failed`, `destroying`, `destroyed`.
    pub status: String,
    /// The same as people say it.
    pub status_words: String,
    /// Why it has that status; empty if there is nothing to add.
    pub status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`: for programs, which never read messages.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub status_since: Time,
    /// How much of what is to be done is done, in percent.
    pub progress: i64,
    /// Where its users begin.
    pub entry_points: Vec<String>,
    /// Where its resources say whether they work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_endpoints: Option<Vec<StatusEndpoint>>,
    /// Was it asked to stop what goes on?
    pub cancelling: bool,
    /// When it shall be destroyed; null if nothing is planned.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub destroy_at: Option<Time>,
    /// Who asked for it.
    #[schema(value_type = String)]
    pub created_by: UserId,
    /// Counts the changes of what users set; also its ETag.
    pub generation: i64,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Time,
    /// When it was gone.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub destroyed_at: Option<Time>,
    /// Its resources, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<Resource>>,
}

/// Where a resource says whether it works.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StatusEndpoint {
    /// The resource's name.
    pub resource: String,
    /// The address that answers.
    pub url: String,
}

impl From<environment::Environment> for Environment {
    /// Without its resources.
    fn from(of: environment::Environment) -> Self {
        Self {
            id: of.id,
            organization_id: of.organization_id,
            name: of.name,
            description: of.description,
            tags: of.tags,
            templates: of.templates,
            parameters: of.parameters,
            on_drift: of.on_drift.to_string(),
            status: of.status.to_string(),
            status_words: of.status.words().to_owned(),
            status_reason: of.reason.to_string(),
            reason_code: of.reason.code().to_owned(),
            status_since: of.status_since,
            progress: of.progress,
            entry_points: of.entry_points,
            status_endpoints: None,
            cancelling: of.is_cancelled,
            destroy_at: of.destroy_at,
            created_by: of.created_by,
            generation: of.generation,
            created_at: of.created_at,
            updated_at: of.updated_at,
            destroyed_at: of.destroyed_at,
            resources: None,
        }
    }
}
