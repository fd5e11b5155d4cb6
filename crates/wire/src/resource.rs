//! Resources of environments.

use std::collections::BTreeMap;

use model::reason::StatusReason as _;
use model::{EnvironmentId, ResourceId, Time, resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A resource of an environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: ResourceId,
    /// Environment that the resource belongs to.
    #[schema(value_type = String)]
    pub environment_id: EnvironmentId,
    /// Name, unique in the environment.
    pub name: String,
    /// Executor that applies the resource.
    pub executor: String,
    /// Template that declares the resource, as `name@version`.
    pub template: String,
    /// Whether the resource is an action.
    pub action: bool,
    /// Description.
    pub description: String,
    /// User-defined tags.
    pub tags: BTreeMap<String, String>,
    /// Planned or running action: `create`, `update`, `replace`, `destroy` or `nothing`.
    pub act: String,
    /// One of `pending`, `planning`, `applying`, `applied`, `failed`, `drifted`, `destroying`,
    /// `destroyed`.
    pub status: String,
    /// Human-readable reason for the status; empty when there is nothing to add.
    pub status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Time of the last status change.
    #[schema(value_type = String, format = DateTime)]
    pub status_since: Time,
    /// Progress of the running step in percent.
    pub progress: i64,
    /// Outputs that other resources can refer to.
    #[schema(value_type = Object)]
    pub outputs: Map<String, Value>,
    /// Paddock object created for the resource.
    pub link: Option<Link>,
    /// Names of the resources that it depends on.
    pub depends_on: Vec<String>,
    /// Health check URL from the template.
    pub health: Option<String>,
    /// Differences between the applied and the observed state.
    pub drift: Vec<Difference>,
    /// Objects that exist but were not created by Paddock.
    pub unexpected: Vec<String>,
    /// Time of the last observation.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub observed_at: Option<Time>,
    /// Consecutive failures of the current step.
    pub attempts: i64,
    /// Incremented by every change of the desired state.
    pub generation: i64,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Time of the last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Time,
    /// Last lines of the log if the resource failed; at most 10. Omitted in lists of all resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_log: Option<Vec<String>>,
    /// Input of the executor, as declared in the template; values of environment variables are
    /// hidden. Omitted in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub with: Option<Map<String, Value>>,
}

/// A Paddock object created for a resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ResourceLink)]
pub struct Link {
    /// Kind of object: `deployment` or `instance`.
    pub kind: String,
    /// Unique identifier.
    pub id: String,
    /// Path in this API.
    pub href: String,
}

impl From<resource::Link> for Link {
    fn from(link: resource::Link) -> Self {
        let href = format!("/api/v1/{}s/{}", link.kind, link.id);
        Self { kind: link.kind, id: link.id, href }
    }
}

/// A field whose observed value differs from the applied value.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// Path of the field.
    pub field: String,
    /// Applied value; null if it did not exist.
    pub made: Value,
    /// Observed value; null if it does not exist.
    pub found: Value,
}

impl From<resource::Difference> for Difference {
    fn from(difference: resource::Difference) -> Self {
        let (made, found) =
            (difference.made.unwrap_or_default(), difference.found.unwrap_or_default());
        Self { field: difference.field, made, found }
    }
}

/// An existing object to adopt.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Adoption)]
pub struct AdoptRequest {
    /// ID of the object, as its executor identifies it.
    pub what: String,
}

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ResourceLogLine)]
pub struct Line {
    /// Line number: pass it as `after` to continue.
    pub number: i64,
    /// Time when the line was written.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Text of the line.
    pub text: String,
}

impl From<resource::Resource> for Resource {
    /// Converts without the log and the executor input.
    fn from(resource: resource::Resource) -> Self {
        Self {
            id: resource.id,
            environment_id: resource.environment_id,
            name: resource.node.name,
            executor: resource.node.executor.to_string(),
            template: resource.node.template,
            action: resource.node.is_action,
            description: resource.node.description,
            tags: resource.node.tags,
            act: resource.act.to_string(),
            status: resource.status.to_string(),
            status_reason: resource.reason.to_string(),
            reason_code: resource.reason.code().to_owned(),
            status_since: resource.status_since,
            progress: resource.progress,
            outputs: resource.outputs,
            link: resource.link.map(Link::from),
            depends_on: resource.node.after,
            health: resource.node.health,
            drift: resource.drift.into_iter().map(Difference::from).collect(),
            unexpected: resource.unexpected,
            observed_at: resource.observed_at,
            attempts: resource.attempts,
            generation: resource.generation,
            created_at: resource.created_at,
            updated_at: resource.updated_at,
            last_log: None,
            with: None,
        }
    }
}
