//! Invites: single-use codes that bring a new user into an organization.

use std::time::Duration;

use serde::Serialize;

use crate::{Invalid, InviteId, OrganizationId, Time, UserId};

/// How long a code works when nobody says otherwise.
pub const DEFAULT_LIFE: Duration = Duration::from_hours(7 * 24);
/// The longest that can be asked for.
pub const MAX_LIFE: Duration = Duration::from_hours(365 * 24);

/// An invite. Its code is not part of it: only a hash of it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Invite {
    /// Its id.
    pub id: InviteId,
    /// The organization that it brings a user into.
    pub organization_id: OrganizationId,
    /// Who made it.
    pub created_by: UserId,
    /// When it was made.
    pub created_at: Time,
    /// When it stops working.
    pub expires_at: Time,
    /// Who used it since it was last opened.
    pub used_by: Option<UserId>,
    /// When that was.
    pub used_at: Option<Time>,
    /// How often it was used in all, over all its openings.
    pub times_used: i64,
}

impl Invite {
    /// Is it used up or past its time? Used and merely expired differ by `used_by`.
    pub fn is_expired(&self, now: Time) -> bool {
        self.used_by.is_some() || self.expires_at <= now
    }
}

/// Checks how long a code shall work, in seconds.
pub fn life(field: &str, seconds: Option<i64>) -> Result<Duration, Invalid> {
    let Some(seconds) = seconds else { return Ok(DEFAULT_LIFE) };
    let life = u64::try_from(seconds).map(Duration::from_secs).unwrap_or_default();
    if life.is_zero() || life > MAX_LIFE {
        let max = MAX_LIFE.as_secs();
        return Err(Invalid::new(field, format!("must be from 1 to {max} seconds (a year)")));
    }
    Ok(life)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives() {
        assert_eq!(life("expires_in", None), Ok(DEFAULT_LIFE));
        assert_eq!(life("expires_in", Some(61)), Ok(Duration::from_secs(61)));
        for bad in [0, -1, i64::MAX, i64::MIN] {
            assert!(life("expires_in", Some(bad)).is_err(), "{bad}");
        }
    }
}
