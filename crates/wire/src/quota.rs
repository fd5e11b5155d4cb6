//! Quotas of callers, and quota grants.

use model::{Time, quota};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Quotas of the caller.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Allowance)]
pub struct Quotas {
    /// Whether quota is enforced. If not, instances are unlimited.
    pub is_limited: bool,
    /// Quotas and their usage.
    pub items: Vec<QuotaUsage>,
}

/// Quota of the caller for one instance type.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Allowed)]
pub struct QuotaUsage {
    /// Kind.
    pub kind: String,
    /// Instance type.
    pub instance_type: String,
    /// Billing model.
    pub billing_model: String,
    /// Holder of the quota: `organization/<id>`, `user/<name>` or `trial/<id>/<name>`.
    pub holder: String,
    /// Maximum number of units; null for no limit.
    pub limit: Option<i64>,
    /// Units in use.
    pub used: i64,
    /// Expiry time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Time>,
}

/// A quota grant.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    /// Unique identifier.
    pub id: String,
    /// Holder: `organization/<id>` or `user/<name>`.
    pub holder: String,
    /// Kind; null for every kind that offers the instance type.
    pub kind: Option<String>,
    /// Instance type.
    pub instance_type: String,
    /// Billing model.
    pub billing_model: String,
    /// Maximum number of units; null for no limit.
    pub limit: Option<i64>,
    /// Expiry time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Time>,
    /// User who created the grant.
    pub created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
}

impl From<quota::Quota> for Grant {
    fn from(q: quota::Quota) -> Self {
        Self {
            id: q.id,
            holder: q.holder,
            kind: q.kind,
            instance_type: q.instance_type,
            billing_model: q.billing_model,
            limit: q.limit,
            expires_at: q.expires_at,
            created_by: q.created_by,
            created_at: q.created_at,
        }
    }
}

/// List of quota grants.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Grants {
    /// Grants, oldest first.
    pub items: Vec<Grant>,
}

/// A quota to grant. Replaces an existing grant for the same holder, kind, instance type and
/// billing model.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// ID of the organization that receives the quota.
    pub organization_id: Option<String>,
    /// Username of the user who receives the quota. Set either this or `organization_id`.
    pub username: Option<String>,
    /// Kind; every kind that offers the instance type if omitted.
    pub kind: Option<String>,
    /// Instance type.
    pub instance_type: String,
    /// Billing model; defaults to `standard`.
    pub billing_model: Option<String>,
    /// Maximum number of units; unlimited if omitted.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub limit: Option<i64>,
    /// Expiry time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<String>,
}
