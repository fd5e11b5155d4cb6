//! Organizations.

use model::{OrganizationId, Time};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::user::{NewUser, User};

/// An organization.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Organization {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: OrganizationId,
    /// Name.
    pub name: String,
    /// Number of deployments.
    pub deployments: i64,
    /// Highest priority of its deployments, set by the platform administrator; null for the
    /// server's default (`--max-priority`).
    pub max_priority: Option<i64>,
    /// Weight in fair shares of shared clusters, set by the platform administrator.
    pub weight: i64,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Users; only when a single organization is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<User>>,
}

impl From<model::organization::Organization> for Organization {
    fn from(o: model::organization::Organization) -> Self {
        Self {
            id: o.id,
            name: o.name,
            deployments: o.deployments,
            max_priority: o.max_priority,
            weight: o.weight,
            created_at: o.created_at,
            members: None,
        }
    }
}

/// An organization to create.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOrganization {
    /// Name.
    pub name: String,
    /// First owner.
    pub owner: NewUser,
}

/// A new organization and its owner.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Founded)]
pub struct CreatedOrganization {
    /// Organization.
    pub organization: Organization,
    /// Owner.
    pub user: User,
}

/// Fields to update.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganizationChange {
    /// New name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Highest priority of its deployments; null for the server's default. Only the platform
    /// administrator may set it.
    #[serde(default, deserialize_with = "set_or_null", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub max_priority: Option<Option<i64>>,
    /// Weight in fair shares of shared clusters, from 1 to 1000. Only the platform administrator
    /// may set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

/// Distinguishes null from an omitted field.
#[allow(clippy::option_option)]
fn set_or_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// What an organization that is being deleted still has.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OrganizationContents {
    /// Number of environments.
    pub environments: i64,
    /// Number of instances.
    pub instances: i64,
    /// Number of deployments, with those of instances.
    pub deployments: i64,
    /// Number of clusters.
    pub clusters: i64,
}
