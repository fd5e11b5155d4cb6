//! Quotas of callers, and quota grants.

use std::collections::BTreeMap;

use model::organization::quota::{Exceeded, Usage};
use model::{OrganizationId, Quantity, Time, quota};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

/// Quotas of the caller.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Allowance)]
pub struct Quotas {
    /// Whether quota is enforced. If not, instances are unlimited.
    pub is_limited: bool,
    /// Quotas of instance types and their usage.
    pub items: Vec<QuotaUsage>,
    /// Quotas of the organization and their usage.
    #[serde(default)]
    #[schema(required)]
    pub organization: Vec<OrganizationQuota>,
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

/// Usage of a quota of an organization.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OrganizationQuota {
    /// What is limited: `deployments`, `clusters`, `instances`, `environments`, `templates`,
    /// `members`, `invites`, `tokens`, `service_accounts`, `streams`, `storage` (bytes), or a
    /// resource type such as `cpu`, of which the requests of all replicas count.
    pub kind: String,
    /// Amount in use.
    #[schema(value_type = f64)]
    pub used: Quantity,
    /// Maximum amount; null for no limit. May be less than what is in use.
    #[schema(value_type = Option<f64>)]
    pub limit: Option<Quantity>,
    /// Whether the limit is the platform's default.
    pub is_default: bool,
}

impl From<Usage> for OrganizationQuota {
    fn from(usage: Usage) -> Self {
        Self {
            kind: usage.kind.to_string(),
            used: usage.used,
            limit: usage.limit.amount(),
            is_default: usage.is_default,
        }
    }
}

/// Quotas of an organization.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OrganizationQuotas {
    /// Organization.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Quotas and their usage.
    pub items: Vec<OrganizationQuota>,
}

/// Quotas to set. Quotas that are not named are unchanged.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaChange {
    /// Limits by kind: an amount, `"unlimited"`, or null to restore the platform's default.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub quotas: BTreeMap<String, Option<QuotaLimit>>,
}

/// A limit in a request: a number, a quantity such as `16Gi`, or `unlimited`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaLimit(pub String);

impl Serialize for QuotaLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for QuotaLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            _ => Err(D::Error::custom("a limit must be a number, text such as \"16Gi\", or null")),
        }
    }
}

/// A request that exceeds a quota of the organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaExceeded {
    /// What is limited, such as `cpu` or `deployments`.
    pub kind: String,
    /// Amount in use.
    #[schema(value_type = f64)]
    pub used: Quantity,
    /// Amount that the request adds.
    #[schema(value_type = f64)]
    pub requested: Quantity,
    /// Maximum amount.
    #[schema(value_type = f64)]
    pub limit: Quantity,
}

impl From<Exceeded> for QuotaExceeded {
    fn from(exceeded: Exceeded) -> Self {
        let Exceeded { kind, used, requested, limit } = exceeded;
        Self { kind: kind.to_string(), used, requested, limit }
    }
}
