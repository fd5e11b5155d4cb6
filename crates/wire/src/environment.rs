//! Environments.

pub mod drift;
pub mod plan;
pub mod request;

use std::collections::BTreeMap;

use model::reason::StatusReason as _;
use model::{EnvironmentId, OrganizationId, Time, UserId, environment};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::resource::Resource;

/// An environment. Lists omit its resources and status endpoints.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Environment {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: EnvironmentId,
    /// Owning organization.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Name, unique in the organization.
    pub name: String,
    /// Description.
    pub description: String,
    /// User-defined tags.
    pub tags: BTreeMap<String, String>,
    /// Templates that the environment is created from, as `name@version`.
    pub templates: Vec<String>,
    /// Parameter values that were set, without defaults.
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// Action on drift: `report` or `repair`.
    pub on_drift: String,
    /// One of `deploying`, `validating`, `deployed`, `failed`, `destroying`, `destroyed`.
    pub status: String,
    /// Status as display text.
    pub status_words: String,
    /// Human-readable reason for the status; empty when there is nothing to add.
    pub status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Time of the last status change.
    #[schema(value_type = String, format = DateTime)]
    pub status_since: Time,
    /// Progress of the running operation in percent.
    pub progress: i64,
    /// Entry points for users of the environment.
    pub entry_points: Vec<String>,
    /// Health endpoints of the resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_endpoints: Option<Vec<StatusEndpoint>>,
    /// Whether a cancellation was requested.
    pub cancelling: bool,
    /// Time when the environment is to be destroyed; null if none is set.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub destroy_at: Option<Time>,
    /// User who created the environment.
    #[schema(value_type = String)]
    pub created_by: UserId,
    /// Incremented by every change of the spec; also the ETag.
    pub generation: i64,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Time of the last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Time,
    /// Time when the environment was destroyed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub destroyed_at: Option<Time>,
    /// Resources, ordered by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<Resource>>,
}

/// Health endpoint of a resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StatusEndpoint {
    /// Resource name.
    pub resource: String,
    /// URL of the health check.
    pub url: String,
}

impl From<environment::Environment> for Environment {
    /// Converts without the resources.
    fn from(environment: environment::Environment) -> Self {
        Self {
            id: environment.id,
            organization_id: environment.organization_id,
            name: environment.name,
            description: environment.description,
            tags: environment.tags,
            templates: environment.templates,
            parameters: environment.parameters,
            on_drift: environment.on_drift.to_string(),
            status: environment.status.to_string(),
            status_words: environment.status.label().to_owned(),
            status_reason: environment.reason.to_string(),
            reason_code: environment.reason.code().to_owned(),
            status_since: environment.status_since,
            progress: environment.progress,
            entry_points: environment.entry_points,
            status_endpoints: None,
            cancelling: environment.is_cancelled,
            destroy_at: environment.destroy_at,
            created_by: environment.created_by,
            generation: environment.generation,
            created_at: environment.created_at,
            updated_at: environment.updated_at,
            destroyed_at: environment.destroyed_at,
            resources: None,
        }
    }
}
