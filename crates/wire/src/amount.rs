//! Amounts of resources, as requests give them and answers show them.

use std::collections::BTreeMap;

use model::{Quantity, Resources, cluster};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An amount in a request: a number, or text such as `500m`, `4Gi` or ` 1`.
// Only its schema is used: amounts are read by `model::Quantity`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it, and a schema would repeat it")]
pub enum Amount {
    Number(f64),
    Text(String),
}

/// How much there is of one resource type.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Capacity {
    /// All there is.
    #[schema(value_type = f64)]
    pub total: Quantity,
    /// What is taken, by deployments or by hand.
    #[schema(value_type = f64)]
    pub used: Quantity,
    /// What can still be taken.
    #[schema(value_type = f64)]
    pub free: Quantity,
}

impl From<cluster::Capacity> for Capacity {
    fn from(capacity: cluster::Capacity) -> Self {
        Self { total: capacity.total, used: capacity.used, free: capacity.free() }
    }
}

/// Capacities by resource type.
pub fn capacities(by_type: BTreeMap<String, cluster::Capacity>) -> BTreeMap<String, Capacity> {
    by_type.into_iter().map(|(kind, capacity)| (kind, capacity.into())).collect()
}

/// Whether something would fit.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Availability {
    /// Is all of it free?
    pub available: bool,
    /// How much is missing of what.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub missing: Resources,
}

impl Availability {
    /// Whether `free` covers `request`.
    pub fn of(request: &Resources, free: &Resources) -> Self {
        let missing = request.shortage(free);
        Self { available: missing.is_empty(), missing }
    }
}

/// An amount of each resource type.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceRequest {
    /// How much of each resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub resources: Resources,
}
