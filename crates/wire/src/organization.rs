//! Organizations.

use model::{OrganizationId, Time};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::user::{NewUser, User};

/// An organization.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Organization {
    /// Its id.
    #[schema(value_type = String)]
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// How many deployments it has.
    pub deployments: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Its users; only when one organization is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<User>>,
}

impl From<model::organization::Organization> for Organization {
    fn from(o: model::organization::Organization) -> Self {
        let (id, name, deployments) = (o.id, o.name, o.deployments);
        Self { id, name, deployments, created_at: o.created_at, members: None }
    }
}

/// An organization to make.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOrganization {
    /// Its name.
    pub name: String,
    /// Its first owner.
    pub owner: NewUser,
}

/// What was made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Founded {
    /// The organization.
    pub organization: Organization,
    /// Its owner.
    pub user: User,
}

/// What of an organization shall change.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganizationChange {
    /// Its new name.
    pub name: String,
}
