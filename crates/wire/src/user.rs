//! Users, credentials and sessions.

use model::{OrganizationId, Time, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: UserId,
    /// Username.
    pub username: String,
    /// Display name.
    pub display_name: String,
    /// Role: `owner`, `member` or `viewer`.
    pub role: String,
    /// Access: `tenant`, `platform` for the platform administrator, or `auditor`.
    pub access: String,
    /// Owning organization.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
}

impl From<model::user::User> for User {
    fn from(u: model::user::User) -> Self {
        Self {
            id: u.id,
            username: u.username,
            display_name: u.display_name,
            role: u.role.to_string(),
            access: u.access.to_string(),
            organization_id: u.organization_id,
            created_at: u.created_at,
        }
    }
}

/// A user to create.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Username, unique ignoring case.
    pub username: String,
    /// Password of at least the configured minimum length.
    pub password: String,
    /// Display name; defaults to the username.
    pub display_name: Option<String>,
}

/// Fields to update.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// Display name. Allowed for the user and for owners.
    pub display_name: Option<String>,
    /// Role: `owner`, `member` or `viewer`. Allowed for owners.
    pub role: Option<String>,
    /// Access: `auditor` to read everything of all organizations, `tenant` to end that. Allowed for
    /// the platform administrator. An auditor has the role `viewer`.
    pub access: Option<String>,
    /// New password. Allowed for the user only; ends all of the user's sessions.
    pub password: Option<String>,
    /// Current password; required to set a new one.
    pub current_password: Option<String>,
}

/// Credentials to log in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// Username, ignoring case.
    pub username: String,
    /// The password.
    pub password: String,
}

/// A login session.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Bearer token for the `Authorization` header. Returned only once.
    pub token: String,
    /// Expiry time.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
    /// Logged-in user.
    pub user: User,
}
