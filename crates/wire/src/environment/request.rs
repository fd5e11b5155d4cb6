//! Requests to create and change environments.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Environment;

/// What users write on an environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentChange {
    /// What it is for.
    pub description: Option<String>,
    /// All its tags from now on.
    pub tags: Option<BTreeMap<String, String>>,
    /// What is done when a resource is not as it was made: `report` or `repair`.
    pub on_drift: Option<String>,
}

/// How long something shall live: seconds as a number, or text such as `90m`, `12h` or `7d`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Life {
    /// Seconds.
    Seconds(u64),
    /// A number with a unit.
    Text(String),
}

/// An environment to make.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEnvironment {
    /// Its name, a DNS label, unique in its organization. A plan needs none.
    pub name: Option<String>,
    /// The templates that it shall be made from, `name@version`.
    pub templates: Vec<String>,
    /// What is set.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// What users write on it.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// When it shall be destroyed (RFC 3339).
    pub destroy_at: Option<String>,
    /// The same, from now on; give one of them.
    #[schema(value_type = Option<Life>)]
    pub ttl: Option<Value>,
    /// What is done when a resource is not as it was made: `report` (if nothing is said) or `repair`.
    pub on_drift: Option<String>,
    /// What exists already and shall be taken over: by resource, as its executor names it.
    #[serde(default)]
    pub adopt: BTreeMap<String, String>,
    /// The plan that was seen; another one is refused.
    pub plan_hash: Option<String>,
}

/// What of an environment shall change.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppliedChange {
    /// The templates that it shall be made from, if others.
    pub templates: Option<Vec<String>>,
    /// What is set anew; null takes the default again. What is not named stays.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// All its tags from now on, if others.
    pub tags: Option<BTreeMap<String, String>>,
    /// What it is for, if something else.
    pub description: Option<String>,
    /// When it shall be destroyed (RFC 3339), if at another time.
    pub destroy_at: Option<String>,
    /// The same, from now on; give one of them.
    #[schema(value_type = Option<Life>)]
    pub ttl: Option<Value>,
    /// What is done when a resource is not as it was made, if something else: `report` or `repair`.
    pub on_drift: Option<String>,
    /// What exists already and shall be taken over: by resource, as its executor names it. Only what is
    /// not made yet can take something over.
    #[serde(default)]
    pub adopt: BTreeMap<String, String>,
    /// The plan that was seen; another one is refused.
    pub plan_hash: Option<String>,
}

/// Until when an environment shall live.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// For how long, from now on.
    #[schema(value_type = Option<Life>)]
    pub ttl: Option<Value>,
    /// Until when (RFC 3339); null means that nothing is planned.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub destroy_at: Option<End>,
}

/// An end that was given, which may be none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct End(pub Option<String>);

/// Tells null from nothing.
fn given<'de, D: Deserializer<'de>>(d: D) -> Result<Option<End>, D::Error> {
    End::deserialize(d).map(Some)
}

/// What shall be mended.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Repair {
    /// Only these resources, by name; all that have drifted if it is left out.
    pub resources: Option<Vec<String>>,
}

/// What is being mended.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Repaired {
    /// The environment.
    pub environment: Environment,
    /// The resources that are mended, by name.
    pub repaired: Vec<String>,
}
