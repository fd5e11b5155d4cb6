//! Tokens: bearer credentials of a user or a service account, with a scope and an expiry.
//!
//! A scope only restricts: the role of the token's user is checked as well.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::access::{Action, SubjectKind};
use crate::text_enum::text_enum;
use crate::{Invalid, OrganizationId, Time, TokenId, UserId, name, time};

/// Lifetime of a token that does not request one.
pub const DEFAULT_LIFETIME: Duration = Duration::from_hours(90 * 24);
/// Upper bound of the configurable maximum lifetime.
pub const MAX_LIFETIME: Duration = Duration::from_hours(10 * 365 * 24);
/// Maximum number of named tokens of one user.
pub const MAX_PER_USER: i64 = 100;
/// Minimum time between two updates of a token's last use.
pub const USE_INTERVAL: Duration = Duration::from_mins(1);

/// How a token was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// By a login. Ends with a logout.
    Session,
    /// By its user, for a program that acts as this user.
    Personal,
    /// By an owner, for a service account of the organization.
    ServiceAccount,
}

text_enum!(Kind {
    Session => "session",
    Personal => "personal",
    ServiceAccount => "service_account",
});

/// What a token may be used for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ScopeDocument", into = "ScopeDocument")]
pub struct Scope {
    /// Whether it only reads.
    pub read_only: bool,
    /// Kinds of subjects that it reads and changes; empty for all.
    pub kinds: BTreeSet<SubjectKind>,
}

/// A scope as it is stored. An unknown kind makes it unreadable, and its token unusable.
#[derive(Serialize, Deserialize)]
struct ScopeDocument {
    read_only: bool,
    kinds: Vec<String>,
}

impl TryFrom<ScopeDocument> for Scope {
    type Error = Invalid;

    fn try_from(stored: ScopeDocument) -> Result<Self, Invalid> {
        Self::check("scope", stored.read_only, &stored.kinds)
    }
}

impl From<Scope> for ScopeDocument {
    fn from(scope: Scope) -> Self {
        let kinds = scope.kinds.iter().map(ToString::to_string).collect();
        Self { read_only: scope.read_only, kinds }
    }
}

impl Scope {
    /// Checks a requested scope.
    pub fn check(field: &str, read_only: bool, kinds: &[String]) -> Result<Self, Invalid> {
        let kinds = kinds.iter().enumerate().map(|(i, kind)| {
            kind.parse().map_err(|_| {
                let known: Vec<_> = SubjectKind::ALL.iter().map(|kind| kind.as_str()).collect();
                let rule = format!("must be one of {}, not {kind:?}", known.join(", "));
                Invalid::new(format!("{field}.kinds[{i}]"), rule)
            })
        });
        Ok(Self { read_only, kinds: kinds.collect::<Result<_, _>>()? })
    }

    /// Whether the scope allows an action. Reading its own user is allowed to every token.
    pub fn allows(&self, action: Action) -> bool {
        let is_own_profile = action.kind() == SubjectKind::Account && action.is_read();
        let is_in_kinds = self.kinds.is_empty() || self.kinds.contains(&action.kind());
        is_own_profile || is_in_kinds && (action.is_read() || !self.read_only)
    }

    /// Whether this scope allows nothing that `other` does not.
    pub fn is_within(&self, other: &Self) -> bool {
        let is_narrower =
            other.kinds.is_empty() || !self.kinds.is_empty() && self.kinds.is_subset(&other.kinds);
        is_narrower && (self.read_only || !other.read_only)
    }

    /// Whether it allows everything.
    pub fn is_full(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.read_only { "read" } else { "read and change" };
        if self.kinds.is_empty() {
            return write!(f, "{verb} everything");
        }
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        write!(f, "{verb} subjects of kind {}", kinds.join(", "))
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// The id.
    pub id: TokenId,
    /// How it was created.
    pub kind: Kind,
    /// The name; empty for logins.
    pub name: String,
    /// What it may be used for.
    pub scope: Scope,
    /// The user, or the service account's user.
    pub user_id: UserId,
    /// The organization.
    pub organization_id: OrganizationId,
    /// The name of the service account, if it belongs to one.
    pub service_account: Option<String>,
    /// The actor who created it.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Time,
    /// Expiry.
    pub expires_at: Time,
    /// Last use, with an accuracy of [`USE_INTERVAL`].
    pub last_used_at: Option<Time>,
}

/// Checks the name of a token.
pub fn name(field: &str, text: &str) -> Result<String, Invalid> {
    name::line(field, text, 100)
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
    use proptest::prelude::*;

    use super::*;
    use crate::access::Verb;

    fn scopes() -> impl Strategy<Value = Scope> {
        let kinds = proptest::sample::subsequence(SubjectKind::ALL.to_vec(), 0..4);
        (any::<bool>(), kinds)
            .prop_map(|(read_only, kinds)| Scope { read_only, kinds: kinds.into_iter().collect() })
    }

    fn actions() -> impl Iterator<Item = Action> {
        let kinds = SubjectKind::ALL.iter();
        kinds.flat_map(|kind| Verb::ALL.iter().map(|verb| Action::new(*kind, *verb)))
    }

    proptest! {
        #[test]
        fn narrower_scope_allows_nothing_more(a in scopes(), b in scopes()) {
            if a.is_within(&b) {
                for action in actions() {
                    prop_assert!(!a.allows(action) || b.allows(action), "{action}: {a} within {b}");
                }
            }
        }

        #[test]
        fn every_scope_is_within_the_full_one_and_itself(scope in scopes()) {
            prop_assert!(scope.is_within(&Scope::default()) && scope.is_within(&scope));
            prop_assert_eq!(Scope::default().is_within(&scope), scope.is_full());
        }

        #[test]
        fn read_only_scope_allows_no_change(scope in scopes()) {
            let scope = Scope { read_only: true, ..scope };
            for action in actions() {
                prop_assert!(action.is_read() || !scope.allows(action), "{action}");
            }
        }
    }

    #[test]
    fn scope_of_a_kind_allows_that_kind_and_the_own_profile() {
        let scope = Scope::check("scope", false, &["deployment".into()]).unwrap();
        let allows = |kind, verb| scope.allows(Action::new(kind, verb));
        assert!(allows(SubjectKind::Deployment, Verb::Create));
        assert!(allows(SubjectKind::Account, Verb::Read));
        assert!(!allows(SubjectKind::Account, Verb::Update));
        assert!(!allows(SubjectKind::Cluster, Verb::Read));
        assert_eq!(scope.to_string(), "read and change subjects of kind deployment");
    }

    #[test]
    fn unknown_kind_names_its_field() {
        let error = Scope::check("scope", true, &["cluster".into(), "boat".into()]).unwrap_err();
        assert_eq!(error.0[0].field, "scope.kinds[1]");
        assert!(error.0[0].detail.starts_with("must be one of account, "), "{error:?}");
    }

    #[test]
    fn lifetime_must_be_within_its_bounds() {
        let max = Duration::from_hours(24 * 365);
        let check = |seconds| check_lifetime("expires_in", seconds, max);
        assert_eq!(check(None), Ok(DEFAULT_LIFETIME));
        assert_eq!(check(Some(1)), Ok(Duration::from_secs(1)));
        for bad in [0, -1, 31_536_001, i64::MAX] {
            assert!(check(Some(bad)).is_err(), "{bad}");
        }
        assert_eq!(
            check_lifetime("expires_in", None, Duration::from_hours(1)),
            Ok(Duration::from_hours(1))
        );
    }
}
