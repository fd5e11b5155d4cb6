//! Resources of environments.

use std::collections::BTreeMap;

use model::reason::Coded as _;
use model::{EnvironmentId, ResourceId, Time, resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A resource of an environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// Its id.
    #[schema(value_type = String)]
    pub id: ResourceId,
    /// The environment that it is part of.
    #[schema(value_type = String)]
    pub environment_id: EnvironmentId,
    /// Its name, unique in its environment.
    pub name: String,
    /// Who carries it out.
    pub executor: String,
    /// The template that it comes from, `name@version`.
    pub template: String,
    /// Is it an action?
    pub action: bool,
    /// What it is for.
    pub description: String,
    /// What users wrote on it.
    pub tags: BTreeMap<String, String>,
    /// What is to be done, or is being done: `create`, `update`, `replace`, `destroy`, `nothing`.
    pub act: String,
    /// Where it is on its way: `pending`, `planning`, `applying`, `applied`, `failed`, `drifted`,
    /// `destroying`, `destroyed`.
    pub status: String,
    /// Why it has that status; empty if there is nothing to add.
    pub status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`: for programs, which never read messages.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub status_since: Time,
    /// How far the step is that goes on, in percent.
    pub progress: i64,
    /// What it gives to others.
    #[schema(value_type = Object)]
    pub outputs: Map<String, Value>,
    /// What of Paddock's own was made for it.
    pub link: Option<Link>,
    /// The resources that must be there first, by name.
    pub depends_on: Vec<String>,
    /// An address that answers when it works, as the template has it.
    pub health: Option<String>,
    /// What is not as it was made.
    pub drift: Vec<Difference>,
    /// What is there and was not made by Paddock.
    pub unexpected: Vec<String>,
    /// When it was last looked at.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub observed_at: Option<Time>,
    /// How often its step failed in a row.
    pub attempts: i64,
    /// Counts the changes of what shall be.
    pub generation: i64,
    /// When it was first asked for.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Time,
    /// What was said last, if it failed: at most 10 lines of its log. Left out in lists of all resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_log: Option<Vec<String>>,
    /// What its executor is told, as the template has it; values of environment variables are not shown.
    /// Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub with: Option<Map<String, Value>>,
}

/// Something of Paddock's own that was made for a resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ResourceLink)]
pub struct Link {
    /// What kind of subject it is: `deployment`, `instance`.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Where it is.
    pub href: String,
}

impl From<resource::Link> for Link {
    fn from(link: resource::Link) -> Self {
        let href = format!("/api/v1/{}s/{}", link.kind, link.id);
        Self { kind: link.kind, id: link.id, href }
    }
}

/// One field that is not what it was made as.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// Which field, as a path.
    pub field: String,
    /// What it was made as; null if it was not there.
    pub made: Value,
    /// What it is; null if it is gone.
    pub found: Value,
}

impl From<resource::Difference> for Difference {
    fn from(of: resource::Difference) -> Self {
        let (made, found) = (of.made.unwrap_or_default(), of.found.unwrap_or_default());
        Self { field: of.field, made, found }
    }
}

/// What exists already.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Adoption {
    /// What shall be taken over, as the executor names it.
    pub what: String,
}

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ResourceLogLine)]
pub struct Line {
    /// Its place: give this as `after` to go on.
    pub number: i64,
    /// When it was said.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// What was said.
    pub text: String,
}

impl From<resource::Resource> for Resource {
    /// Without its log and what its executor is told.
    fn from(of: resource::Resource) -> Self {
        Self {
            id: of.id,
            environment_id: of.environment_id,
            name: of.node.name,
            executor: of.node.executor.to_string(),
            template: of.node.template,
            action: of.node.is_action,
            description: of.node.description,
            tags: of.node.tags,
            act: of.act.to_string(),
            status: of.status.to_string(),
            status_reason: of.reason.to_string(),
            reason_code: of.reason.code().to_owned(),
            status_since: of.status_since,
            progress: of.progress,
            outputs: of.outputs,
            link: of.link.map(Link::from),
            depends_on: of.node.after,
            health: of.node.health,
            drift: of.drift.into_iter().map(Difference::from).collect(),
            unexpected: of.unexpected,
            observed_at: of.observed_at,
            attempts: of.attempts,
            generation: of.generation,
            created_at: of.created_at,
            updated_at: of.updated_at,
            last_log: None,
            with: None,
        }
    }
}
