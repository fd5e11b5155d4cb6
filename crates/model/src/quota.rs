//! Quota: how many instances of which type an organization or user may have.
//!
//! Grants come from a file ([`parse`]) or from the API; decisions treat both alike. The store
//! counts usage in the transaction that inserts an instance.

mod active;
mod choose;
mod denied;
mod file;

use serde::Serialize;

use crate::Time;
use crate::kind::Kind;
use crate::name::fold;

pub use active::{Entitlement, entitlement};
pub use choose::{Choice, CountedPer, Denied, Request, choose};
pub use denied::parse_deny_list;
pub use file::{parse, parse_for};

/// Limit of a grant if neither the grant nor its holder's entry sets one.
pub const DEFAULT_LIMIT: u32 = 1;

/// Billing model of instances on clusters that organizations register for themselves.
pub const ENTERPRISE: &str = "enterprise";

/// Default billing model and instance type.
pub const STANDARD: &str = "standard";

/// The holder of a grant; all usage of a holder is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// An organization, by its id in the quota list.
    Organization(String),
    /// A single user, by name.
    User(String),
}

/// Permission to have instances of one type with one billing model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The kind; none means all kinds that have the type.
    pub kind: Option<String>,
    /// The instance type.
    pub instance_type: String,
    /// The billing model.
    pub billing_model: String,
    /// Maximum number of instances, weighted by size; none means unlimited.
    pub limit: Option<u32>,
    /// Expiry.
    pub expires_at: Option<Time>,
}

impl Grant {
    /// Has it expired at `now`?
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Does it apply to this kind, and does the kind have its type and billing model?
    pub fn concerns(&self, kind: &Kind) -> bool {
        let is_of_kind = self.kind.as_ref().is_none_or(|name| *name == kind.name);
        let instance_type = kind.instance_type(&self.instance_type);
        is_of_kind
            && instance_type.is_some_and(|one| one.billing_model(&self.billing_model).is_some())
    }

    fn is_for(&self, instance_type: &str, billing_model: &str) -> bool {
        self.instance_type == instance_type && self.billing_model == billing_model
    }
}

/// A stored grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quota {
    /// The id.
    pub id: String,
    /// The holder: `organization/ID` or `user/NAME`.
    pub holder: String,
    /// The kind; none means all kinds that have the type.
    pub kind: Option<String>,
    /// The instance type.
    pub instance_type: String,
    /// The billing model.
    pub billing_model: String,
    /// Maximum number of units; none means unlimited.
    pub limit: Option<i64>,
    /// Expiry.
    pub expires_at: Option<Time>,
    /// The administrator who granted it.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Time,
}

/// A user on the deny list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeniedOwner {
    /// The user's name.
    pub owner: String,
    /// The reason.
    pub reason: String,
    /// The administrator who added it.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Time,
}

/// A quota list from a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuotaList {
    organizations: Vec<Organization>,
    accounts: Vec<Account>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Organization {
    id: String,
    /// Does it apply to every user? Ignored if users are registered by name.
    any_user: bool,
    /// User names, folded.
    users: Vec<String>,
    /// Grants; those without a limit get the default.
    grants: Vec<Grant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    /// The user name, folded.
    username: String,
    /// Grants; those without a limit get the default.
    grants: Vec<Grant>,
}

impl Organization {
    fn has(&self, username: &str) -> bool {
        if self.users.is_empty() { self.any_user } else { self.users.iter().any(|u| u == username) }
    }
}

impl QuotaList {
    /// The grants of a user and their holder; none if the user is not on the list.
    ///
    /// An organization's entry that includes the user takes precedence over the user's own. Grants
    /// without a limit get `default_limit`.
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

    /// Is the list empty?
    pub fn is_empty(&self) -> bool {
        self.organizations.is_empty() && self.accounts.is_empty()
    }
}

#[cfg(test)]
mod tests;
