//! Quota: what callers may have, and what is granted to whom.

use model::{Time, quota};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the caller may have.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Allowance {
    /// Does quota count at all? If not, everybody may have everything.
    pub is_limited: bool,
    /// What may be had, and what of it is in use.
    pub items: Vec<Allowed>,
}

/// What the caller may have of one instance type.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Allowed {
    /// The kind.
    pub kind: String,
    /// The instance type.
    pub instance_type: String,
    /// How it is paid for.
    pub billing_model: String,
    /// Whose quota it is: `organization/<id>`, `user/<name>`, or `trial/<id>/<name>`.
    pub holder: String,
    /// How many units at most; as many as one likes when there is no limit.
    pub limit: Option<i64>,
    /// How many units of it are in use.
    pub used: i64,
    /// Until when.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Time>,
}

/// A grant.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    /// Its id.
    pub id: String,
    /// Whose: `organization/<id>` or `user/<name>`.
    pub holder: String,
    /// Of which kind; of every kind that has the type when there is none.
    pub kind: Option<String>,
    /// Of which instance type.
    pub instance_type: String,
    /// Paid how.
    pub billing_model: String,
    /// How many units; as many as they like when there is no limit.
    pub limit: Option<i64>,
    /// Until when.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Time>,
    /// Who granted it.
    pub created_by: String,
    /// When.
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

/// What was granted.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Grants {
    /// Oldest first.
    pub items: Vec<Grant>,
}

/// What shall be granted. The same for the same holder replaces what was granted before.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// To an organization, by id.
    pub organization_id: Option<String>,
    /// To a user, by name; either this or an organization.
    pub username: Option<String>,
    /// Of which kind; of every kind that has the type when it is left out.
    pub kind: Option<String>,
    /// Of which instance type.
    pub instance_type: String,
    /// Paid how; `standard` when it is left out.
    pub billing_model: Option<String>,
    /// How many units; as many as they like when it is left out.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub limit: Option<i64>,
    /// Until when.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<String>,
}
