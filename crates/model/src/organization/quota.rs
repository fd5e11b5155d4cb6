//! Quotas of an organization: the maximum of what it has at the same time.
//!
//! Not the quota of a service kind (`model::quota`), which counts units of instances.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::text_enum::text_enum;
use crate::{Invalid, Quantity, Resources};

/// What a quota limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaKind {
    /// A number of objects, or bytes.
    Subject(Subject),
    /// A resource type: the sum of what the organization's deployments request.
    Resource(String),
}

/// Objects whose number is limited, and bytes in the case of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Deployments, without those of instances.
    Deployments,
    /// The organization's own clusters.
    Clusters,
    /// Instances of managed services.
    Instances,
    /// Environments that are not destroyed.
    Environments,
    /// Versions of templates.
    Templates,
    /// Users.
    Members,
    /// Invites that can be redeemed.
    Invites,
    /// Tokens that have not expired.
    Tokens,
    /// Service accounts.
    ServiceAccounts,
    /// Open streams of events and logs, on each server.
    Streams,
    /// Bytes of loaded images and of template files.
    Storage,
}

text_enum!(Subject {
    Deployments => "deployments",
    Clusters => "clusters",
    Instances => "instances",
    Environments => "environments",
    Templates => "templates",
    Members => "members",
    Invites => "invites",
    Tokens => "tokens",
    ServiceAccounts => "service_accounts",
    Streams => "streams",
    Storage => "storage",
});

/// Prefix of a resource type in [`QuotaKind::key`].
const RESOURCE: &str = "resource/";

impl QuotaKind {
    /// The kind in the database. A resource type may have the name of a subject: they differ here.
    pub fn key(&self) -> String {
        match self {
            Self::Subject(subject) => subject.as_str().to_owned(),
            Self::Resource(name) => format!("{RESOURCE}{name}"),
        }
    }

    /// The kind with that key.
    pub fn from_key(key: &str) -> Result<Self, Invalid> {
        match key.strip_prefix(RESOURCE) {
            Some(name) => Ok(Self::Resource(name.to_owned())),
            None => key.parse().map(Self::Subject),
        }
    }

    /// Whether users can name it: a resource type with the name of a subject has no quota.
    pub fn is_named(&self) -> bool {
        match self {
            Self::Subject(_) => true,
            Self::Resource(name) => name.parse::<Subject>().is_err(),
        }
    }

    /// How to reduce the usage.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Resource(_) => "delete deployments or instances, or scale deployments down",
            Self::Subject(subject) => match subject {
                Subject::Deployments => "delete deployments",
                Subject::Clusters => "delete clusters",
                Subject::Instances => "delete instances",
                Subject::Environments => "destroy environments",
                Subject::Templates => "delete template versions",
                Subject::Members => "remove members",
                Subject::Invites => "revoke invites",
                Subject::Tokens => "log out, or wait until tokens expire",
                Subject::ServiceAccounts => "delete service accounts",
                Subject::Streams => "close streams",
                Subject::Storage => "delete images or template versions",
            },
        }
    }
}

impl From<Subject> for QuotaKind {
    fn from(subject: Subject) -> Self {
        Self::Subject(subject)
    }
}

impl fmt::Display for QuotaKind {
    /// The name that users see: `deployments`, `cpu`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subject(subject) => f.write_str(subject.as_str()),
            Self::Resource(name) => f.write_str(name),
        }
    }
}

impl FromStr for QuotaKind {
    type Err = Invalid;

    /// A subject, or any other name as a resource type.
    fn from_str(name: &str) -> Result<Self, Invalid> {
        if name == "users" {
            return Ok(Subject::Members.into());
        }
        if let Ok(subject) = name.parse() {
            return Ok(Self::Subject(subject));
        }
        let only: Resources = [(name.to_owned(), Quantity::ZERO)].into_iter().collect();
        only.check("quotas")?;
        Ok(Self::Resource(name.to_owned()))
    }
}

impl Serialize for QuotaKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The most that a quota allows; nothing exceeds [`Limit::Unlimited`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// At most this amount.
    AtMost(Quantity),
    /// Any amount.
    Unlimited,
}

impl Limit {
    /// A number of objects.
    pub fn count(count: i64) -> Self {
        count
            .checked_mul(1000)
            .map_or(Self::Unlimited, |milli| Self::AtMost(Quantity::from_milli(milli)))
    }

    /// The limit in thousandths.
    pub fn milli(self) -> i64 {
        match self {
            Self::AtMost(amount) => amount.milli(),
            Self::Unlimited => i64::MAX,
        }
    }

    /// The limit from thousandths.
    pub fn from_milli(milli: i64) -> Self {
        match milli {
            i64::MAX => Self::Unlimited,
            milli => Self::AtMost(Quantity::from_milli(milli)),
        }
    }

    /// The amount; `None` if any is allowed.
    pub fn amount(self) -> Option<Quantity> {
        match self {
            Self::AtMost(amount) => Some(amount),
            Self::Unlimited => None,
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "unlimited" => Ok(Self::Unlimited),
            text => {
                text.parse().map(Self::AtMost).map_err(|error: crate::quantity::InvalidQuantity| {
                    format!("{error}, or unlimited")
                })
            }
        }
    }
}

/// Fails if the limit of a number of objects is no whole number.
pub fn check(kind: &QuotaKind, limit: Limit) -> Result<(), Invalid> {
    match (kind, limit) {
        (QuotaKind::Subject(subject), Limit::AtMost(amount)) if amount.milli() % 1000 != 0 => {
            Err(Invalid::new(subject.as_str(), "must be a whole number"))
        }
        _ => Ok(()),
    }
}

/// Limits of organizations that have no quota of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultQuotas(BTreeMap<QuotaKind, Limit>);

impl Default for DefaultQuotas {
    /// High limits of objects, no limits of resource types.
    fn default() -> Self {
        let counts = [
            (Subject::Deployments, 1000),
            (Subject::Clusters, 1000),
            (Subject::Instances, 10_000),
            (Subject::Environments, 1000),
            (Subject::Templates, 10_000),
            (Subject::Members, 1000),
            (Subject::Invites, 1000),
            (Subject::Tokens, 100_000),
            (Subject::ServiceAccounts, 50),
            (Subject::Streams, 500),
        ];
        Self(counts.map(|(subject, count)| (subject.into(), Limit::count(count))).into())
    }
}

impl DefaultQuotas {
    /// The limit of a kind.
    pub fn get(&self, kind: &QuotaKind) -> Limit {
        self.0.get(kind).copied().unwrap_or(Limit::Unlimited)
    }

    /// Sets the limit of a kind.
    pub fn set(&mut self, kind: impl Into<QuotaKind>, limit: Limit) {
        self.0.insert(kind.into(), limit);
    }

    /// The kinds with a limit.
    pub fn kinds(&self) -> impl Iterator<Item = &QuotaKind> {
        self.0.keys()
    }

    /// Sets limits from `KIND=LIMIT,…`; a limit of `none` is unlimited.
    pub fn set_all(&mut self, text: &str) -> Result<(), Invalid> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                Invalid::new(part, "must be KIND=LIMIT, such as cpu=8 or deployments=100")
            })?;
            let kind: QuotaKind = name.trim().parse()?;
            let limit = match value.trim() {
                "none" => Limit::Unlimited,
                value => value.parse().map_err(|why: String| Invalid::new(name.trim(), why))?,
            };
            check(&kind, limit)?;
            self.set(kind, limit);
        }
        Ok(())
    }
}

/// Usage of one quota of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// What is limited.
    pub kind: QuotaKind,
    /// Amount in use.
    pub used: Quantity,
    /// The limit.
    pub limit: Limit,
    /// Whether the limit is the platform's default.
    pub is_default: bool,
}

impl Usage {
    /// The refusal of a request for `requested` more, if it exceeds the limit.
    pub fn refuse(&self, requested: Quantity) -> Option<Exceeded> {
        let is_within = self.used.milli() <= self.limit.milli() - requested.milli();
        (!is_within).then(|| Exceeded {
            kind: self.kind.clone(),
            used: self.used,
            requested,
            limit: Quantity::from_milli(self.limit.milli()),
        })
    }
}

/// A request that exceeds a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exceeded {
    /// What is limited.
    pub kind: QuotaKind,
    /// Amount in use.
    pub used: Quantity,
    /// Amount that the request adds.
    pub requested: Quantity,
    /// The limit.
    pub limit: Quantity,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, used, requested, limit } = self;
        write!(
            f,
            "quota exceeded: the organization uses {} of {} {kind}, and the request adds {}",
            used.to_short_string(),
            limit.to_short_string(),
            requested.to_short_string()
        )
    }
}

/// The amounts of a request, by kind.
pub fn of_resources(request: &Resources) -> impl Iterator<Item = (QuotaKind, Quantity)> {
    let charged = request.iter().filter(|(_, amount)| !amount.is_zero());
    charged.map(|(name, amount)| (QuotaKind::Resource(name.to_owned()), amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_subjects_or_resource_types() {
        for (name, kind) in [
            ("deployments", Some(Subject::Deployments.into())),
            ("users", Some(Subject::Members.into())),
            ("cpu", Some(QuotaKind::Resource("cpu".into()))),
            ("nvidia.com/gpu", Some(QuotaKind::Resource("nvidia.com/gpu".into()))),
            ("CPU", None),
            ("", None),
        ] {
            assert_eq!(name.parse::<QuotaKind>().ok(), kind, "{name:?}");
        }
    }

    #[test]
    fn resource_type_named_like_a_subject_has_another_key() {
        let same = QuotaKind::Resource("deployments".into());
        assert_ne!(same.key(), QuotaKind::from(Subject::Deployments).key());
        assert!(!same.is_named());
        for kind in [same, Subject::Storage.into(), QuotaKind::Resource("cpu".into())] {
            assert_eq!(QuotaKind::from_key(&kind.key()), Ok(kind));
        }
    }

    #[test]
    fn default_quotas_are_read_from_a_list() {
        let mut quotas = DefaultQuotas::default();
        quotas.set_all("cpu=1.5, ram=4Gi,deployments=3,clusters=none").unwrap();
        let limit = |name: &str| quotas.get(&name.parse().unwrap()).amount();
        assert_eq!(limit("cpu"), Some("1.5".parse().unwrap()));
        assert_eq!(limit("deployments"), Some(Quantity::whole(3)));
        assert_eq!((limit("clusters"), limit("gpu")), (None, None));
        for text in ["cpu", "cpu=much", "deployments=1.5", "CPU=1", "cpu=-1"] {
            assert!(quotas.set_all(text).is_err(), "{text}");
        }
    }

    #[test]
    fn request_beyond_the_limit_is_refused_without_overflow() {
        let cpu = QuotaKind::Resource("cpu".into());
        let usage = |used: i64, limit: Limit| Usage {
            kind: cpu.clone(),
            used: Quantity::from_milli(used),
            limit,
            is_default: false,
        };
        let eight = Limit::count(8);
        assert_eq!(usage(7000, eight).refuse(Quantity::whole(1)), None);
        let refused = usage(7000, eight).refuse(Quantity::whole(2)).unwrap();
        let want = "quota exceeded: the organization uses 7 of 8 cpu, and the request adds 2";
        assert_eq!(refused.to_string(), want);
        let most = usage(Quantity::MAX.milli(), Limit::Unlimited);
        assert_eq!(most.refuse(Quantity::MAX), None);
        assert!(usage(i64::MAX - 1, Limit::Unlimited).refuse(Quantity::whole(1)).is_some());
        assert!(usage(9000, eight).refuse(Quantity::whole(1)).is_some(), "already above the limit");
    }
}
