//! Resources as the API shows them.
//!
//! Values of environment variables may be secret: they are never shown, only the expressions that a
//! template has in their place.

use std::collections::BTreeMap;

use model::resource::{self, Status};
use model::template::{Act, Executor};
use model::{EnvironmentId, ResourceId, Time};
use serde::Serialize;
use serde_json::{Map, Value};
use store::Read;
use store::operation::log;
use utoipa::ToSchema;

/// What stands in the place of a value that is not shown.
const HIDDEN: &str = "(not shown)";
/// So many lines of a log are shown with a failure.
const LAST_LINES: i64 = 10;

/// A resource of an environment.
#[derive(Serialize, ToSchema)]
pub(crate) struct Resource {
    /// Its id.
    #[schema(value_type = String)]
    pub(super) id: ResourceId,
    /// The environment that it is part of.
    #[schema(value_type = String)]
    environment_id: EnvironmentId,
    /// Its name, unique in its environment.
    name: String,
    /// Who carries it out.
    #[schema(value_type = String)]
    executor: Executor,
    /// The template that it comes from, `name@version`.
    template: String,
    /// Is it an action?
    action: bool,
    /// What it is for.
    description: String,
    /// What users wrote on it.
    tags: BTreeMap<String, String>,
    /// What is to be done, or is being done: `create`, `update`, `replace`, `destroy`, `nothing`.
    #[schema(value_type = String)]
    act: Act,
    /// Where it is on its way: `pending`, `planning`, `applying`, `applied`, `failed`, `drifted`,
    /// `destroying`, `destroyed`.
    #[schema(value_type = String)]
    status: Status,
    /// Why it is there.
    status_reason: String,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    status_since: Time,
    /// How far the step is that goes on, in percent.
    progress: i64,
    /// What it gives to others.
    #[schema(value_type = Object)]
    outputs: Map<String, Value>,
    /// What of Paddock's own was made for it.
    link: Option<Link>,
    /// The resources that must be there first, by name.
    depends_on: Vec<String>,
    /// An address that answers when it works, as the template has it.
    health: Option<String>,
    /// What is not as it was made.
    drift: Vec<Difference>,
    /// What is there and was not made by Paddock.
    unexpected: Vec<String>,
    /// When it was last looked at.
    #[schema(value_type = Option<String>, format = DateTime)]
    observed_at: Option<Time>,
    /// How often its step failed in a row.
    attempts: i64,
    /// Counts the changes of what shall be.
    generation: i64,
    /// When it was first asked for.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// What was said last, if it failed: at most 10 lines of its log. Left out in lists of all resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_log: Option<Vec<String>>,
    /// What its executor is told, as the template has it; values of environment variables are not shown.
    /// Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    with: Option<Map<String, Value>>,
}

/// Something of Paddock's own that was made for a resource.
#[derive(Serialize, ToSchema)]
#[schema(as = ResourceLink)]
pub(crate) struct Link {
    /// What kind of subject it is: `deployment`, `instance`.
    kind: String,
    /// Its id.
    id: String,
    /// Where it is.
    href: String,
}

impl From<resource::Link> for Link {
    fn from(link: resource::Link) -> Self {
        let href = format!("/api/v1/{}s/{}", link.kind, link.id);
        Self { kind: link.kind, id: link.id, href }
    }
}

/// One field that is not what it was made as.
#[derive(Serialize, ToSchema)]
pub(crate) struct Difference {
    /// Which field, as a path.
    field: String,
    /// What it was made as; null if it was not there.
    made: Value,
    /// What it is; null if it is gone.
    found: Value,
}

impl From<resource::Difference> for Difference {
    fn from(of: resource::Difference) -> Self {
        let (made, found) = (of.made.unwrap_or_default(), of.found.unwrap_or_default());
        Self { field: of.field, made, found }
    }
}

impl Resource {
    /// Without its log and what its executor is told.
    pub(crate) fn short(of: resource::Resource) -> Self {
        Self {
            id: of.id,
            environment_id: of.environment_id,
            name: of.node.name,
            executor: of.node.executor,
            template: of.node.template,
            action: of.node.is_action,
            description: of.node.description,
            tags: of.node.tags,
            act: of.act,
            status: of.status,
            status_reason: of.status_reason,
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

    /// As a part of its environment: with what was said last if it failed.
    pub(crate) async fn part(read: &mut Read, of: resource::Resource) -> store::Result<Self> {
        let last_log = match of.status {
            Status::Failed => Some(log::last(read, of.id, LAST_LINES).await?),
            _ => None,
        };
        Ok(Self { last_log, ..Self::short(of) })
    }

    /// With what its executor is told.
    pub(super) async fn long(read: &mut Read, mut of: resource::Resource) -> store::Result<Self> {
        let with = Some(shown(std::mem::take(&mut of.node.with)));
        Ok(Self { with, ..Self::part(read, of).await? })
    }
}

fn shown(mut with: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(env)) = with.get_mut("env") {
        let is_expression = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
        for value in env.values_mut().filter(|value| !is_expression(value)) {
            *value = HIDDEN.into();
        }
    }
    with
}
