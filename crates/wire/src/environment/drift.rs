//! Drift: differences between the applied and the observed state of an environment.

use model::{Time, resource};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::resource::Difference;

/// Drift of an environment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Drift {
    /// Whether any resource has drifted.
    pub drifted: bool,
    /// Resources that have drifted or have unexpected objects.
    pub resources: Vec<Drifted>,
}

/// A drifted resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = DriftedResource)]
pub struct Drifted {
    /// Name.
    pub name: String,
    /// Status.
    pub status: String,
    /// Changed fields.
    pub differences: Vec<Difference>,
    /// Objects that exist but were not created by Paddock.
    pub unexpected: Vec<String>,
    /// Time of the last observation.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub observed_at: Option<Time>,
}

impl From<resource::Resource> for Drifted {
    fn from(resource: resource::Resource) -> Self {
        Self {
            name: resource.node.name,
            status: resource.status.to_string(),
            differences: resource.drift.into_iter().map(Difference::from).collect(),
            unexpected: resource.unexpected,
            observed_at: resource.observed_at,
        }
    }
}
