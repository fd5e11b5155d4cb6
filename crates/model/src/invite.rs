//! Invites: single-use codes for joining an organization.

use std::time::Duration;

use serde::Serialize;

use crate::user::Role;
use crate::{Invalid, InviteId, OrganizationId, Time, UserId, time};

/// Default lifetime of an invite.
pub const DEFAULT_LIFETIME: Duration = Duration::from_hours(7 * 24);
/// Upper bound of the configurable maximum lifetime.
pub const MAX_LIFETIME: Duration = Duration::from_hours(365 * 24);

/// An invite. It does not contain its code, of which only a hash is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Invite {
    /// The id.
    pub id: InviteId,
    /// The organization to join.
    pub organization_id: OrganizationId,
    /// The role of users who redeem it.
    pub role: Role,
    /// The creator.
    pub created_by: UserId,
    /// Time of creation.
    pub created_at: Time,
    /// Expiry.
    pub expires_at: Time,
    /// Who redeemed it since it was last reopened.
    pub used_by: Option<UserId>,
    /// Time of that redemption.
    pub used_at: Option<Time>,
    /// Total number of redemptions.
    pub times_used: i64,
}

impl Invite {
    /// Is it redeemed or expired? `used_by` distinguishes the two.
    pub fn is_expired(&self, now: Time) -> bool {
        self.used_by.is_some() || self.expires_at <= now
    }
}

/// Checks a lifetime in seconds, which is at most `max`.
pub fn check_lifetime(
    field: &str,
    seconds: Option<i64>,
    max: Duration,
) -> Result<Duration, Invalid> {
    time::check_lifetime(field, seconds, DEFAULT_LIFETIME, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetime_must_be_within_its_bounds() {
        let check = |seconds, max| check_lifetime("expires_in", seconds, max);
        assert_eq!(check(None, MAX_LIFETIME), Ok(DEFAULT_LIFETIME));
        assert_eq!(check(Some(61), MAX_LIFETIME), Ok(Duration::from_secs(61)));
        for bad in [0, -1, i64::MAX, i64::MIN] {
            assert!(check(Some(bad), MAX_LIFETIME).is_err(), "{bad}");
        }
        let minute = Duration::from_mins(1);
        assert_eq!(check(None, minute), Ok(minute));
        assert_eq!(check(Some(60), minute), Ok(minute));
        assert!(check(Some(61), minute).is_err());
    }
}
