//! Users: who may do what. A user belongs to exactly one organization.

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;
use crate::{Invalid, OrganizationId, Time, UserId, name};

/// What a user may do in its organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, including members and invites.
    Owner,
    /// Everything but members and re-opening invites.
    Member,
}

/// How far a user's reach goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Its own organization.
    Tenant,
    /// All of them: the platform administrator.
    Platform,
}

/// A user. The password's hash is not part of it: only the sign-in looks at that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The organization it belongs to.
    pub organization_id: OrganizationId,
    /// The name it signs in with, unique when case is ignored.
    pub username: String,
    /// The name that others see.
    pub display_name: String,
    /// What it may do in its organization.
    pub role: Role,
    /// How far its reach goes.
    pub access: Access,
    /// Counts the changes of what users set.
    pub generation: i64,
    /// When it was made.
    pub created_at: Time,
}

/// A user as someone asks for it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// The name to sign in with.
    pub username: String,
    /// The name that others see; the username when none was given.
    pub display_name: String,
}

impl NewUser {
    /// Checks what was asked for.
    pub fn check(username: &str, display_name: Option<&str>) -> Result<Self, Invalid> {
        let username = self::username("username", username)?;
        let display_name = match display_name.map(str::trim) {
            None | Some("") => username.clone(),
            Some(text) => name::line("display_name", text, 200)?,
        };
        Ok(Self { username, display_name })
    }
}

/// Checks a username.
pub fn username(field: &str, text: &str) -> Result<String, Invalid> {
    let text = name::line(field, text, 64)?;
    // No colon: HTTP Basic could not carry it. No blanks: they can't be seen.
    if text.chars().all(|c| c.is_alphanumeric() || "._-@+".contains(c)) {
        return Ok(text);
    }
    Err(Invalid::new(field, "only letters, digits and . _ - @ + are allowed"))
}

/// Checks a password: any text that is long enough.
pub fn password(field: &str, text: &str, min_chars: usize) -> Result<(), Invalid> {
    let length = text.chars().count();
    if length < min_chars.max(1) {
        let min = min_chars.max(1);
        return Err(Invalid::new(
            field,
            format!("too short; at least {min} characters are needed"),
        ));
    }
    if text.len() > 1024 {
        return Err(Invalid::new(field, "at most 1024 bytes are allowed"));
    }
    Ok(())
}

text_enum!(Role { Owner => "owner", Member => "member" });
text_enum!(Access { Tenant => "tenant", Platform => "platform" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usernames() {
        for (text, good) in [
            ("Sample", true),
            ("ann.lee+ops@example.com", true),
            ("Zoë", true),
            ("", false),
            ("a:b", false),
            ("a b", false),
            ("a\tb", false),
        ] {
            assert_eq!(username("username", text).is_ok(), good, "{text:?}");
        }
        assert!(username("username", &"x".repeat(65)).is_err());
    }

    #[test]
    fn any_password_that_is_not_empty_unless_a_setting_says_more() {
        assert!(password("password", "Sample", 0).is_ok());
        assert!(password("password", "", 0).is_err());
        assert!(password("password", "Sample", 8).is_err());
    }
}
