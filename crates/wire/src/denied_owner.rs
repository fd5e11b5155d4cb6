//! Users who may not have instances.

use model::{Time, quota};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user who may not have instances.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeniedOwner {
    /// The user's name.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub created_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
}

impl From<quota::DeniedOwner> for DeniedOwner {
    fn from(of: quota::DeniedOwner) -> Self {
        let quota::DeniedOwner { owner, reason, created_by, created_at } = of;
        Self { owner, reason, created_by, created_at }
    }
}

/// Users who may not have instances.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeniedOwners {
    /// By name.
    pub items: Vec<DeniedOwner>,
}

/// A user who shall not have instances.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeniedOwner {
    /// The user's name.
    pub owner: String,
    /// Why, for those who look at the list.
    #[serde(default)]
    pub reason: String,
}
