//! Quota: who may have how many instances of which type, and what follows for a request.
//!
//! A list comes from a file ([`parse`]), and grants can also be managed by API; decisions take grants,
//! wherever they are from. Counting what is used is the store's: it does so where it inserts.

mod active;
mod choose;
mod denied;
mod file;

use serde::Serialize;

use crate::Time;
use crate::kind::Kind;
use crate::name::fold;

pub use active::{Active, is_active};
pub use choose::{Asked, Choice, Denied, Per, choose};
pub use denied::denied;
pub use file::{parse, parse_for};

/// How many instances a grant is for when neither it nor its holder's entry says so.
pub const DEFAULT_LIMIT: u32 = 1;

/// The billing model of instances on clusters that organizations register for themselves.
pub const ENTERPRISE: &str = "enterprise";

/// The billing model, and the instance type, that are meant when none is named.
pub const STANDARD: &str = "standard";

/// Who holds a grant: all that use it are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// An organization, by its id as the list writes it.
    Organization(String),
    /// A user alone, by name.
    User(String),
}

/// The right to have instances of one type, paid for in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The kind; none means all kinds that have the type.
    pub kind: Option<String>,
    /// The instance type.
    pub instance_type: String,
    /// The billing model.
    pub billing_model: String,
    /// How many, weighed by size; none means any number.
    pub limit: Option<u32>,
    /// When it ends.
    pub expires_at: Option<Time>,
}

impl Grant {
    /// Does it end at `now` or has it ended before?
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Is it for this kind, and for a type and a billing model that the kind has?
    pub fn concerns(&self, kind: &Kind) -> bool {
        let is_its = self.kind.as_ref().is_none_or(|name| *name == kind.name);
        let instance_type = kind.type_of(&self.instance_type);
        is_its && instance_type.is_some_and(|one| one.billing_model(&self.billing_model).is_some())
    }

    fn is_for(&self, instance_type: &str, billing_model: &str) -> bool {
        self.instance_type == instance_type && self.billing_model == billing_model
    }
}

/// A grant as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quota {
    /// Its id.
    pub id: String,
    /// Whose: `organization/ID` or `user/NAME`.
    pub holder: String,
    /// Of which kind; of every kind that has the type when there is none.
    pub kind: Option<String>,
    /// Of which type.
    pub instance_type: String,
    /// Paid how.
    pub billing_model: String,
    /// How many units; as many as they like when there is no limit.
    pub limit: Option<i64>,
    /// Until when.
    pub expires_at: Option<Time>,
    /// Who granted it.
    pub created_by: String,
    /// When.
    pub created_at: Time,
}

/// A user who may not have instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeniedOwner {
    /// The user's name.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub created_by: String,
    /// When.
    pub created_at: Time,
}

/// The quota list of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuotaList {
    organizations: Vec<Organization>,
    accounts: Vec<Account>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Organization {
    id: String,
    /// Is every user of it meant? Only when none is registered by name.
    any_user: bool,
    /// User names, folded.
    users: Vec<String>,
    /// Those without a limit have the default.
    grants: Vec<Grant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    /// The user name, folded.
    username: String,
    /// Those without a limit have the default.
    grants: Vec<Grant>,
}

impl Organization {
    fn has(&self, username: &str) -> bool {
        if self.users.is_empty() { self.any_user } else { self.users.iter().any(|u| u == username) }
    }
}

impl QuotaList {
    /// What a user may have, and with whom it is counted. None: the user is not on the list.
    ///
    /// An organization's entry that has the user comes before the user's own. A grant without a
    /// limit of its own or of its entry has `default_limit`.
    pub fn grants_or(
        &self,
        organization: &str,
        username: &str,
        default_limit: u32,
    ) -> Option<(Holder, Vec<Grant>)> {
        let folded = fold(username);
        let organization =
            self.organizations.iter().find(|one| one.id == organization && one.has(&folded));
        let (holder, listed) = match organization {
            Some(one) => (Holder::Organization(one.id.clone()), &one.grants),
            None => {
                let account = self.accounts.iter().find(|one| one.username == folded)?;
                (Holder::User(username.to_owned()), &account.grants)
            }
        };
        let limited =
            |grant: &Grant| Grant { limit: grant.limit.or(Some(default_limit)), ..grant.clone() };
        Some((holder, listed.iter().map(limited).collect()))
    }

    /// The same with [`DEFAULT_LIMIT`].
    pub fn grants(&self, organization: &str, username: &str) -> Option<(Holder, Vec<Grant>)> {
        self.grants_or(organization, username, DEFAULT_LIMIT)
    }

    /// Is nobody on the list?
    pub fn is_empty(&self) -> bool {
        self.organizations.is_empty() && self.accounts.is_empty()
    }
}

#[cfg(test)]
mod tests;
