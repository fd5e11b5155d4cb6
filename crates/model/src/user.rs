//! Users. Each belongs to exactly one organization.

use serde::{Deserialize, Serialize};

use crate::event::Actor;
use crate::text_enum::text_enum;
use crate::{Invalid, OrganizationId, Time, UserId, name};

/// The role of a user in its organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May do everything, including managing members and invites.
    Owner,
    /// May do everything except managing members and reopening invites.
    Member,
    /// May read everything and change nothing but its own password and tokens.
    Viewer,
}

impl Role {
    /// Whether the role has fewer rights than `other`.
    pub fn is_less_than(self, other: Self) -> bool {
        let rank = |role| match role {
            Self::Viewer => 0,
            Self::Member => 1,
            Self::Owner => 2,
        };
        rank(self) < rank(other)
    }
}

/// The access scope of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The user's organization.
    Tenant,
    /// All organizations: a platform administrator.
    Platform,
    /// All organizations, only for reading.
    Auditor,
}

/// What a user is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A person, who logs in.
    #[default]
    Person,
    /// A program of the organization. It has no password; owners issue its tokens.
    ServiceAccount,
}

/// A user, without the password hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// The id.
    pub id: UserId,
    /// The organization.
    pub organization_id: OrganizationId,
    /// The login name, unique without regard to case.
    pub username: String,
    /// The display name.
    pub display_name: String,
    /// The role.
    pub role: Role,
    /// The access scope.
    pub access: Access,
    /// Person or service account.
    pub kind: Kind,
    /// Incremented with every change by users.
    pub generation: i64,
    /// Time of creation.
    pub created_at: Time,
}

impl User {
    /// The name that people know it by: a service account's name, otherwise the login name.
    pub fn short_name(&self) -> &str {
        match self.kind {
            Kind::Person => &self.username,
            Kind::ServiceAccount => &self.display_name,
        }
    }

    /// The actor of the user's changes.
    pub fn actor(&self) -> Actor {
        match self.kind {
            Kind::Person => Actor::User(self.id),
            Kind::ServiceAccount => Actor::ServiceAccount(self.id),
        }
    }
}

/// A validated request to create a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// The login name.
    pub username: String,
    /// The display name; defaults to the login name.
    pub display_name: String,
}

impl NewUser {
    /// Checks the request.
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
    // No colon, because HTTP Basic separates by it, and no blanks, which are invisible.
    if text.chars().all(|c| c.is_alphanumeric() || "._-@+".contains(c)) {
        return Ok(text);
    }
    Err(Invalid::new(field, "must contain only letters, digits and . _ - @ +"))
}

/// The unique username of a service account. No person can have it: usernames have no slash.
pub fn service_account_username(organization: OrganizationId, name: &str) -> String {
    format!("service-account/{organization}/{name}")
}

/// Checks the role of a service account.
pub fn service_account_role(field: &str, role: Role) -> Result<Role, Invalid> {
    match role {
        Role::Owner => Err(Invalid::new(
            field,
            "must be member or viewer: a service account does not manage the organization",
        )),
        Role::Member | Role::Viewer => Ok(role),
    }
}

/// Checks the length of a password.
pub fn password(field: &str, text: &str, min_chars: usize) -> Result<(), Invalid> {
    let length = text.chars().count();
    if length < min_chars.max(1) {
        let min = min_chars.max(1);
        return Err(Invalid::new(field, format!("must have at least {min} characters")));
    }
    if text.len() > 1024 {
        return Err(Invalid::new(field, "must have at most 1024 bytes"));
    }
    Ok(())
}

text_enum!(Role { Owner => "owner", Member => "member", Viewer => "viewer" });
text_enum!(Kind { Person => "person", ServiceAccount => "service_account" });
text_enum!(Access { Tenant => "tenant", Platform => "platform", Auditor => "auditor" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usernames_have_a_restricted_alphabet() {
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
    fn password_must_have_the_minimum_length() {
        assert!(password("password", "Sample", 0).is_ok());
        assert!(password("password", "", 0).is_err());
        assert!(password("password", "Sample", 8).is_err());
    }
}
