//! What the reasons of all subjects share: codes, requesters, and parts of messages.
//!
//! Every subject has an enum `Reason` in its own folder. The name of a variant is the code that clients
//! and workers decide by, its fields are the facts, and its `Display` is the message. One cause has one
//! code, whichever subject it is about. A message adds what the status does not say, and is empty where
//! there is nothing to add. (The enums derive `thiserror::Error` for `Display` alone: so variant, code and
//! message stand side by side.)

use std::fmt::{self, Display};

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{DeploymentId, OrganizationId, Time};

/// What the reasons of all subjects can do.
pub trait Coded: Display + Default + Serialize + DeserializeOwned {
    /// The code that clients decide by: the name of the variant. Of a reason that passes on another one
    /// (a replica's, a deployment's) the code of that one.
    fn code(&self) -> &str;

    /// A message without a code: of an old row, an old agent, an external system.
    fn reported(message: impl Into<String>) -> Self;

    /// Reads a stored reason. Rows of releases without codes have a message alone.
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self::reported(text))
    }

    /// Serializes the reason as clients see it: as the fields `status_reason` and `reason_code`.
    fn tell<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry("status_reason", &self.to_string())?;
        fields.serialize_entry("reason_code", self.code())?;
        fields.end()
    }
}

/// Defines a subject's `Reason`: its own variants, those that all reasons have, and which variants pass
/// on another reason.
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
            /// A message without a code: of an old row, of an agent, of an external system.
            #[error("{}", $crate::reason::sentence(message))]
            Reported {
                /// The message.
                message: String,
            },
            /// A reason of a newer version.
            #[error("{0}")]
            #[serde(untagged)]
            Unknown($crate::reason::Unknown),
        }

        impl $crate::reason::Coded for Reason {
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
        }
    };
}
pub(crate) use reason;

/// A reason of a newer version: kept as it is.
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
        f.write_str(&sentence(message))
    }
}

/// A workload that a message is about. One of another organization can't be named: it has no name here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Who {
    /// A workload of the reader's organization.
    Named(Named),
    /// A workload of another organization.
    OtherOrganization,
}

/// A workload of the reader's organization; made by [`Who::seen_by`] only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    id: DeploymentId,
    name: String,
    priority: i64,
}

impl Who {
    /// A deployment of `owner`, as members of `reader` may see it.
    pub fn seen_by(
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

impl Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(of) => write!(f, "{} (priority {})", of.name, of.priority),
            Self::OtherOrganization => {
                f.write_str("a higher-priority workload of another organization")
            }
        }
    }
}

/// Who requested something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum By {
    /// A user of the organization.
    User {
        /// The user's name.
        name: String,
    },
    /// An administrator of the platform.
    Administrator {
        /// The administrator's name, if it is known.
        name: Option<String>,
    },
    /// The environment that it belonged to.
    Environment {
        /// The environment's name.
        name: String,
    },
}

impl Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { name } => f.write_str(name),
            Self::Administrator { name: Some(name) } => write!(f, "administrator {name}"),
            Self::Administrator { name: None } => f.write_str("an administrator"),
            Self::Environment { name } => write!(f, "environment {name}"),
        }
    }
}

/// `Deletion requested by …`, or nothing if it is not known by whom.
pub(crate) fn requested(what: &str, by: Option<&By>) -> String {
    by.map(|by| format!("{what} requested by {by}.")).unwrap_or_default()
}

/// Somebody's message as one sentence.
pub(crate) fn sentence(message: &str) -> String {
    let message = message.trim();
    match message.chars().last() {
        None => String::new(),
        Some('.' | '!' | '?') => message.to_owned(),
        Some(_) => format!("{message}."),
    }
}

/// Somebody's message within a sentence.
pub(crate) fn quoted(message: &str) -> &str {
    let message = message.trim().trim_end_matches('.');
    if message.is_empty() { "no details given" } else { message }
}

/// ` on NAME`, or nothing.
pub(crate) fn on(name: Option<&String>) -> String {
    name.map(|name| format!(" on {name}")).unwrap_or_default()
}

/// A further sentence after one, or nothing.
pub(crate) fn and(more: &dyn Display) -> String {
    match more.to_string() {
        more if more.is_empty() => more,
        more => format!(" {more}"),
    }
}

/// The same of one that may be missing.
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
