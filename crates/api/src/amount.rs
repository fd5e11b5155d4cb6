//! Amounts of resources as the API shows and takes them.

use std::collections::BTreeMap;

use model::{Quantity, Resources, cluster};
use serde::Serialize;
use utoipa::ToSchema;

/// An amount in a request: a number, or text such as `500m`, `4Gi` or ` 1`.
#[derive(ToSchema, Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used; amounts are read by `model::Quantity`")]
pub(crate) enum Amount {
    Number(f64),
    Text(String),
}

/// How much there is of one resource type.
#[derive(Serialize, ToSchema)]
pub(crate) struct Capacity {
    /// All there is.
    #[schema(value_type = f64)]
    total: Quantity,
    /// What is taken, by deployments or by hand.
    #[schema(value_type = f64)]
    used: Quantity,
    /// What can still be taken.
    #[schema(value_type = f64)]
    free: Quantity,
}

pub(crate) fn capacities(of: BTreeMap<String, cluster::Capacity>) -> BTreeMap<String, Capacity> {
    let show = |(kind, c): (String, cluster::Capacity)| {
        (kind, Capacity { total: c.total, used: c.used, free: c.free() })
    };
    of.into_iter().map(show).collect()
}

/// Whether something would fit.
#[derive(Serialize, ToSchema)]
pub(crate) struct Availability {
    /// Is all of it free?
    available: bool,
    /// How much is missing of what.
    #[schema(value_type = BTreeMap<String, f64>)]
    missing: Resources,
}

impl Availability {
    pub(crate) fn of(request: &Resources, free: &Resources) -> Self {
        let missing = request.shortage(free);
        Self { available: missing.is_empty(), missing }
    }
}

/// Checks what somebody wants to take or give back.
pub(crate) fn request(field: &str, request: &Resources) -> Result<(), model::Invalid> {
    if request.is_empty() {
        let detail = "name at least one resource type, for example {\"cpu\": 1}";
        return Err(model::Invalid::new(field, detail));
    }
    request.check(field)
}
