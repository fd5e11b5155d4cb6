//! Status reasons: codes, requesters and message parts shared by all subjects.
//!
//! Every subject has an enum `Reason`. The variant name is the code that clients and workers decide
//! by, its fields are the facts, and its `Display` is the message. One cause has one code for all
//! subjects. A message adds what the status does not say and is empty if there is nothing to add.
//! (The enums derive `thiserror::Error` only for `Display`: it keeps variant and message together.)

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{DeploymentId, OrganizationId, Time};

/// A status reason with a code.
pub trait StatusReason: Display + Default + Serialize + DeserializeOwned {
    /// The code that clients decide by: the variant name, or the code of the reason that this one
    /// passes on (a replica's, a deployment's).
    fn code(&self) -> &str;

    /// A message without a code, from an old row, an old agent or an external system.
    fn reported(message: impl Into<String>) -> Self;

    /// The reason with this code and no other fields, if there is one.
    fn bare(code: &str) -> Option<Self>;

    /// Parses a stored reason. Rows of releases without codes contain only a message.
    fn parse(text: &str) -> Self {
        // Most reasons are bare, and serde is slow with tagged enums: it buffers all fields.
        let code = text.strip_prefix(r#"{"code":""#).and_then(|rest| rest.strip_suffix(r#""}"#));
        code.and_then(Self::bare)
            .or_else(|| serde_json::from_str(text).ok())
            .unwrap_or_else(|| Self::reported(text))
    }

    /// Serializes the reason for clients, as the fields `status_reason` and `reason_code`.
    fn serialize_status<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry("status_reason", &self.to_string())?;
        fields.serialize_entry("reason_code", self.code())?;
        fields.end()
    }
}

/// Defines a subject's `Reason`: its variants, the shared ones, and which variants pass on another
/// reason.
macro_rules! reason {
    ($(#[$doc:meta])* enum { $($variants:tt)* } $(passes on $($passed:pat => $inner:ident),+)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[derive(strum::IntoStaticStr, strum::VariantNames, thiserror::Error)]
        #[serde(tag = "code")]
        pub enum Reason {
            /// Nothing to add to the status.
            #[default]
            #[error("")]
            AsExpected,
            $($variants)*
            /// A message without a code, from an old row, an agent or an external system.
            #[error("{}", $crate::reason::with_period(message))]
            Reported {
                /// The message.
                message: String,
            },
            /// A reason from a newer version.
            #[error("{0}")]
            #[serde(untagged)]
            Unknown($crate::reason::Unknown),
        }

        impl $crate::reason::StatusReason for Reason {
            fn code(&self) -> &str {
                match self {
                    $($($passed => $inner.code(),)+)?
                    Self::Unknown(other) => &other.code,
                    other => other.into(),
                }
            }

            fn reported(message: impl Into<String>) -> Self {
                Self::Reported { message: message.into() }
            }

            fn bare(code: &str) -> Option<Self> {
                static BARE: $crate::reason::Bare<Reason> = $crate::reason::Bare::new();
                let names = <Self as strum::VariantNames>::VARIANTS;
                let all = || $crate::reason::all_bare(names, |it| matches!(it, Self::Unknown(_)));
                BARE.get_or_init(all).get(code).cloned()
            }
        }
    };
}
pub(crate) use reason;

/// Reasons by code that have no other fields.
pub(crate) type Bare<R> = OnceLock<HashMap<&'static str, R>>;

/// The variants that can be parsed from their code alone.
pub(crate) fn all_bare<R: DeserializeOwned>(
    names: &'static [&'static str],
    is_unknown: impl Fn(&R) -> bool,
) -> HashMap<&'static str, R> {
    let parsed = |name: &&'static str| {
        let reason = serde_json::from_value(serde_json::json!({ "code": name })).ok()?;
        (!is_unknown(&reason)).then_some((*name, reason))
    };
    names.iter().filter_map(parsed).collect()
}

/// A reason from a newer version, preserved unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// Its code.
    pub code: String,
    /// Its other fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.fields.get("message").and_then(Value::as_str).unwrap_or_default();
        let message = if message.trim().is_empty() { &self.code } else { message };
        f.write_str(&with_period(message))
    }
}

/// A workload named in a message. One of another organization is never named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Workload {
    /// A workload of the reader's organization.
    Named(Named),
    /// A workload of another organization.
    OtherOrganization,
}

/// A workload of the reader's organization; only [`Workload::visible_to`] creates it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    id: DeploymentId,
    name: String,
    priority: i64,
}

impl Workload {
    /// A deployment of `owner`, as members of `reader` may see it.
    pub fn visible_to(
        reader: OrganizationId,
        owner: OrganizationId,
        (id, name, priority): (DeploymentId, &str, i64),
    ) -> Self {
        if reader == owner {
            Self::Named(Named { id, name: name.to_owned(), priority })
        } else {
            Self::OtherOrganization
        }
    }
}

impl Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(named) => write!(f, "{} (priority {})", named.name, named.priority),
            Self::OtherOrganization => {
                f.write_str("a higher-priority workload of another organization")
            }
        }
    }
}

/// The requester of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Requester {
    /// A user of the organization.
    User {
        /// The user's name.
        name: String,
    },
    /// An administrator of the platform.
    Administrator {
        /// The administrator's name, if known.
        name: Option<String>,
    },
    /// The environment that it belonged to.
    Environment {
        /// The environment's name.
        name: String,
    },
}

impl Display for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { name } => f.write_str(name),
            Self::Administrator { name: Some(name) } => write!(f, "administrator {name}"),
            Self::Administrator { name: None } => f.write_str("an administrator"),
            Self::Environment { name } => write!(f, "environment {name}"),
        }
    }
}

/// `Deletion requested by …`, or empty if the requester is unknown.
pub(crate) fn requested(what: &str, by: Option<&Requester>) -> String {
    by.map(|by| format!("{what} requested by {by}.")).unwrap_or_default()
}

/// A message with a final period.
pub(crate) fn with_period(message: &str) -> String {
    let message = message.trim();
    match message.chars().last() {
        None => String::new(),
        Some('.' | '!' | '?') => message.to_owned(),
        Some(_) => format!("{message}."),
    }
}

/// A message to embed in another, without its final period.
pub(crate) fn quoted(message: &str) -> &str {
    let message = message.trim().trim_end_matches('.');
    if message.is_empty() { "no details given" } else { message }
}

/// The last message before a failure: nothing is retried any more.
pub(crate) fn without_retry(last: &dyn Display) -> String {
    last.to_string().trim_end_matches(" Retrying.").to_owned()
}

/// ` on NAME`, or empty.
pub(crate) fn on(name: Option<&String>) -> String {
    name.map(|name| format!(" on {name}")).unwrap_or_default()
}

/// A further message after a blank, or empty.
pub(crate) fn and(more: &dyn Display) -> String {
    match more.to_string() {
        more if more.is_empty() => more,
        more => format!(" {more}"),
    }
}

/// The same for an optional message.
pub(crate) fn and_some<T: Display>(more: Option<&T>) -> String {
    more.map(|more| and(more)).unwrap_or_default()
}

/// A time, to the second.
pub(crate) fn at(time: Time) -> Time {
    Time(time.0 - time.0.rem_euclid(1_000_000))
}

/// `count` with its noun.
pub(crate) fn count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A time span.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        s if s >= 3600 && s % 3600 == 0 => format!("{} h", s / 3600),
        s if s >= 60 && s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

/// An amount of memory.
pub(crate) fn bytes(bytes: i64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests;
