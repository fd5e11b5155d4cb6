//! Users, and how they sign in.

use model::{OrganizationId, Time, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// Its id.
    #[schema(value_type = String)]
    pub id: UserId,
    /// The name that it signs in with.
    pub username: String,
    /// The name that others see.
    pub display_name: String,
    /// `owner` or `member`.
    pub role: String,
    /// `tenant`, or `platform` for the platform administrator.
    pub access: String,
    /// The organization that it belongs to.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// When it was made.
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

/// A user to make.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// The name to sign in with, unique when case is ignored.
    pub username: String,
    /// The password: any text that is long enough.
    pub password: String,
    /// The name that others see; the username when it is left out.
    pub display_name: Option<String>,
}

/// What of a user shall change.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// By the user itself or an owner.
    pub display_name: Option<String>,
    /// `owner` or `member`; by an owner.
    pub role: Option<String>,
    /// A new password, by the user itself. All its sign-ins end.
    pub password: Option<String>,
    /// The password of now; needed to set a new one.
    pub current_password: Option<String>,
}

/// Who signs in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The name to sign in with; case does not matter.
    pub username: String,
    /// The password.
    pub password: String,
}

/// A sign-in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Send it as `Authorization: Bearer …`. It is shown only here.
    pub token: String,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
    /// Who is signed in.
    pub user: User,
}
