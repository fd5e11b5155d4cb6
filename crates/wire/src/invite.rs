//! Invites: single-use codes that add a user to an organization.

use model::{InviteId, OrganizationId, Time, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An invite.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Invite {
    /// Unique identifier.
    #[schema(value_type = String)]
    pub id: InviteId,
    /// Inviting organization.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Role of users who redeem the invite: `viewer`, `member` or `owner`.
    pub role: String,
    /// Whether the invite can be redeemed.
    pub active: bool,
    /// Whether the invite was redeemed or has expired. `used_by` tells the two apart.
    pub expired: bool,
    /// Username of the user who redeemed the invite since it was last renewed.
    pub used_by: Option<String>,
    /// Time of the last redemption.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub used_at: Option<Time>,
    /// Number of redemptions.
    pub times_used: i64,
    /// ID of the user who created the invite.
    #[schema(value_type = String)]
    pub created_by: UserId,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// Expiry time.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
    /// Invite code; only in the response to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Redemptions, oldest first; only when a single invite is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<Vec<InviteUse>>,
}

impl Invite {
    /// Creates the view of `invite` at `now`; `used_by` is the username of the user who redeemed
    /// it.
    pub fn new(invite: &model::invite::Invite, used_by: Option<String>, now: Time) -> Self {
        let expired = invite.is_expired(now);
        Self {
            id: invite.id,
            organization_id: invite.organization_id,
            role: invite.role.to_string(),
            active: !expired,
            expired,
            used_by,
            used_at: invite.used_at,
            times_used: invite.times_used,
            created_by: invite.created_by,
            created_at: invite.created_at,
            expires_at: invite.expires_at,
            code: None,
            uses: None,
        }
    }
}

/// A redemption of an invite.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct InviteUse {
    /// ID of the user who joined.
    #[schema(value_type = String)]
    pub user_id: UserId,
    /// Username of the user who joined.
    pub username: String,
    /// Time of the redemption.
    #[schema(value_type = String, format = DateTime)]
    pub used_at: Time,
}

/// Status of an invite code.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct InviteStatus {
    /// Invite code.
    pub code: String,
    /// Whether the invite can be redeemed.
    pub active: bool,
    /// Whether the invite was redeemed or has expired.
    pub expired: bool,
    /// Username of the user who redeemed the invite.
    pub used_by: Option<String>,
    /// Expiry time.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
    /// Name of the inviting organization.
    pub organization: String,
}

/// Lifetime and role of an invite.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InviteLife)]
pub struct NewInvite {
    /// Lifetime in seconds. Defaults to seven days.
    pub expires_in: Option<i64>,
    /// Role of users who redeem the invite: `viewer`, `member` (the default), or `owner`, which only
    /// owners may give. A reopened invite keeps its role.
    pub role: Option<String>,
}

/// An invite code.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteCode {
    /// Invite code.
    pub code: String,
}

/// Redemption of an invite: creates a user in the inviting organization.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Redemption {
    /// Invite code.
    pub code: String,
    /// Username, unique ignoring case.
    pub username: String,
    /// Password of at least the configured minimum length.
    pub password: String,
    /// Display name; defaults to the username.
    pub display_name: Option<String>,
}
