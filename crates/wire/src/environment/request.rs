//! Requests to create and change environments.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Environment;

/// Fields to update.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentChange {
    /// Description.
    pub description: Option<String>,
    /// Tags; replaces all existing tags.
    pub tags: Option<BTreeMap<String, String>>,
    /// Action on drift: `report` or `repair`.
    pub on_drift: Option<String>,
}

/// Lifetime: a number of seconds, or text such as `90m`, `12h` or `7d`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Life)]
pub enum Lifetime {
    /// Seconds.
    Seconds(u64),
    /// A number with a unit.
    Text(String),
}

/// An environment to create.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEnvironment {
    /// Name: a DNS label, unique in the organization. Optional for plans.
    pub name: Option<String>,
    /// Templates, as `name@version`.
    pub templates: Vec<String>,
    /// Parameter values.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// User-defined tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Description.
    #[serde(default)]
    pub description: String,
    /// Time when the environment is to be destroyed (RFC 3339).
    pub destroy_at: Option<String>,
    /// Lifetime from now on; an alternative to `destroy_at`.
    #[schema(value_type = Option<Lifetime>)]
    pub ttl: Option<Value>,
    /// Action on drift: `report` (the default) or `repair`.
    pub on_drift: Option<String>,
    /// Existing objects to adopt, by resource name, as their executor identifies them.
    #[serde(default)]
    pub adopt: BTreeMap<String, String>,
    /// Hash of the reviewed plan. The request fails if the current plan differs.
    pub plan_hash: Option<String>,
}

/// Fields to update.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AppliedChange)]
pub struct ApplyRequest {
    /// Templates; unchanged if omitted.
    pub templates: Option<Vec<String>>,
    /// Parameter values to set; null restores the default. Omitted parameters keep their value.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// Tags; replaces all existing tags.
    pub tags: Option<BTreeMap<String, String>>,
    /// Description.
    pub description: Option<String>,
    /// Time when the environment is to be destroyed (RFC 3339).
    pub destroy_at: Option<String>,
    /// Lifetime from now on; an alternative to `destroy_at`.
    #[schema(value_type = Option<Lifetime>)]
    pub ttl: Option<Value>,
    /// Action on drift: `report` or `repair`.
    pub on_drift: Option<String>,
    /// Existing objects to adopt, by resource name, as their executor identifies them. Only
    /// resources that are not created yet can adopt an object.
    #[serde(default)]
    pub adopt: BTreeMap<String, String>,
    /// Hash of the reviewed plan. The request fails if the current plan differs.
    pub plan_hash: Option<String>,
}

/// New end of life of an environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Extension)]
pub struct ExtendRequest {
    /// Lifetime from now on.
    #[schema(value_type = Option<Lifetime>)]
    pub ttl: Option<Value>,
    /// Time when the environment is to be destroyed (RFC 3339); null removes it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub destroy_at: Option<DestroyAt>,
}

/// An end of life that was given; it may be null.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DestroyAt(pub Option<String>);

/// Distinguishes null from an absent field.
fn given<'de, D: Deserializer<'de>>(d: D) -> Result<Option<DestroyAt>, D::Error> {
    DestroyAt::deserialize(d).map(Some)
}

/// Drift to repair.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Repair)]
pub struct RepairRequest {
    /// Names of the resources to repair; all drifted resources if omitted.
    pub resources: Option<Vec<String>>,
}

/// Result of a repair request.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Repaired)]
pub struct RepairResponse {
    /// Environment.
    pub environment: Environment,
    /// Names of the resources that are being repaired.
    pub repaired: Vec<String>,
}
