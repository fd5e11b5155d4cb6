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
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Users; only when a single organization is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<User>>,
}

impl From<model::organization::Organization> for Organization {
    fn from(o: model::organization::Organization) -> Self {
        let (id, name, deployments) = (o.id, o.name, o.deployments);
        Self { id, name, deployments, created_at: o.created_at, members: None }
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
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganizationChange {
    /// New name.
    pub name: String,
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
