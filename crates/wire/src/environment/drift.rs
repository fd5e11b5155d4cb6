//! Drift: what of an environment is not as it was made.

use model::{Time, resource};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::resource::Difference;

/// What is not as it was made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Drift {
    /// Is anything not as it was made?
    pub drifted: bool,
    /// The resources that are not, or have something beside them that Paddock did not make.
    pub resources: Vec<Drifted>,
}

/// A resource that is not as it was made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = DriftedResource)]
pub struct Drifted {
    /// Its name.
    pub name: String,
    /// Where it is on its way.
    pub status: String,
    /// What is different, field by field.
    pub differences: Vec<Difference>,
    /// What is there and was not made by Paddock.
    pub unexpected: Vec<String>,
    /// When it was last looked at.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub observed_at: Option<Time>,
}

impl From<resource::Resource> for Drifted {
    fn from(of: resource::Resource) -> Self {
        Self {
            name: of.node.name,
            status: of.status.to_string(),
            differences: of.drift.into_iter().map(Difference::from).collect(),
            unexpected: of.unexpected,
            observed_at: of.observed_at,
        }
    }
}
