//! Invites: single-use codes that bring a new user into an organization.

use model::{InviteId, OrganizationId, Time, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An invite.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Invite {
    /// Its id.
    #[schema(value_type = String)]
    pub id: InviteId,
    /// The organization that invites.
    #[schema(value_type = String)]
    pub organization_id: OrganizationId,
    /// Can it be used now?
    pub active: bool,
    /// Was it used, or is its time over? Used and merely expired differ by `used_by`.
    pub expired: bool,
    /// The username of who used it since it was last opened.
    pub used_by: Option<String>,
    /// When it was last used.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub used_at: Option<Time>,
    /// How often it was used in all.
    pub times_used: i64,
    /// The id of the user who made it.
    #[schema(value_type = String)]
    pub created_by: UserId,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Time,
    /// When it stops working.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
    /// The code itself; only in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// All its uses, oldest first; only when one invite is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<Vec<InviteUse>>,
}

impl Invite {
    /// The invite as it is at `now`; `used_by` is the username of who used it.
    pub fn new(invite: &model::invite::Invite, used_by: Option<String>, now: Time) -> Self {
        let expired = invite.is_expired(now);
        Self {
            id: invite.id,
            organization_id: invite.organization_id,
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

/// One use of an invite.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct InviteUse {
    /// Who joined.
    #[schema(value_type = String)]
    pub user_id: UserId,
    /// By which name.
    pub username: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub used_at: Time,
}

/// How an invite's code is doing.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct InviteStatus {
    /// The invite's code.
    pub code: String,
    /// Can it be used now?
    pub active: bool,
    /// Was it used, or is its time over?
    pub expired: bool,
    /// The username of who used it.
    pub used_by: Option<String>,
    /// When it stops working.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Time,
    /// The name of the organization that invites.
    pub organization: String,
}

/// How long a code shall work.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteLife {
    /// In seconds; seven days when it is left out.
    pub expires_in: Option<i64>,
}

/// A code.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteCode {
    /// The invite's code.
    pub code: String,
}

/// Who joins.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Redemption {
    /// The invite's code.
    pub code: String,
    /// The name to sign in with, unique when case is ignored.
    pub username: String,
    /// The password: any text that is long enough.
    pub password: String,
    /// The name that others see; the username when it is left out.
    pub display_name: Option<String>,
}
