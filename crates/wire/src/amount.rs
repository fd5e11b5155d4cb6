//! Resource amounts in requests and responses.

use std::collections::BTreeMap;

use model::{Quantity, Resources, cluster};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Resource amount in a request: a number, or a quantity such as `500m`, `4Gi` or ` 1`.
// Only the schema is used: `model::Quantity` parses amounts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it, and a schema would repeat it")]
pub enum Amount {
    Number(f64),
    Text(String),
}

/// Capacity of one resource type.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Capacity {
    /// Total capacity.
    #[schema(value_type = f64)]
    pub total: Quantity,
    /// Capacity used by deployments and manual reservations.
    #[schema(value_type = f64)]
    pub used: Quantity,
    /// Free capacity.
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

/// Result of a capacity check.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Availability {
    /// Whether the requested capacity is free.
    pub available: bool,
    /// Shortage by resource type.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub missing: Resources,
}

impl Availability {
    /// Checks whether `free` covers `request`.
    pub fn check(request: &Resources, free: &Resources) -> Self {
        let missing = request.shortage(free);
        Self { available: missing.is_empty(), missing }
    }
}

/// Amounts by resource type.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceRequest {
    /// Amounts by resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    pub resources: Resources,
}
