//! Denied owners: users who may not own instances.

use model::{Time, quota};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user who may not own instances.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeniedOwner {
    /// Username.
    pub owner: String,
    /// Reason.
    pub reason: String,
    /// User who added the entry.
    pub created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
}

impl From<quota::DeniedOwner> for DeniedOwner {
    fn from(denied: quota::DeniedOwner) -> Self {
        let quota::DeniedOwner { owner, reason, created_by, created_at } = denied;
        Self { owner, reason, created_by, created_at }
    }
}

/// Users who may not own instances.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeniedOwners {
    /// Denied owners, ordered by username.
    pub items: Vec<DeniedOwner>,
}

/// A user to deny instances.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeniedOwner {
    /// Username.
    pub owner: String,
    /// Reason, shown in the list.
    #[serde(default)]
    pub reason: String,
}
