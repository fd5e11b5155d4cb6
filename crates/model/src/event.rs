//! Events: the log of all changes, with subject, time and actor.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;
use crate::{OrganizationId, Time, UserId};

/// The kind of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An organization.
    Organization,
    /// A user.
    User,
    /// An invite.
    Invite,
    /// A cluster.
    Cluster,
    /// A deployment.
    Deployment,
    /// An instance.
    Instance,
    /// A pool of clusters.
    Pool,
    /// A template.
    Template,
    /// An environment.
    Environment,
    /// A resource of an environment.
    Resource,
}

text_enum!(Kind {
    Organization => "organization",
    User => "user",
    Invite => "invite",
    Cluster => "cluster",
    Deployment => "deployment",
    Instance => "instance",
    Pool => "pool",
    Template => "template",
    Environment => "environment",
    Resource => "resource",
});

/// The actor of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// An authenticated user.
    User(UserId),
    /// A service account.
    ServiceAccount(UserId),
    /// A bearer of an OIDC token without a user.
    External(ExternalId),
    /// An unauthenticated caller, who creates an organization or redeems an invite.
    Anonymous,
    /// A worker, by its name.
    Worker(&'static str),
    /// The agent of a cluster.
    Agent,
    /// The server itself, when it starts.
    Server,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::User(id) => write!(f, "user:{id}"),
            Actor::ServiceAccount(id) => write!(f, "service-account:{id}"),
            Actor::External(id) => write!(f, "oidc:{id}"),
            Actor::Anonymous => f.write_str("anonymous"),
            Actor::Worker(name) => write!(f, "worker:{name}"),
            Actor::Agent => f.write_str("agent"),
            Actor::Server => f.write_str("server"),
        }
    }
}

/// The id of an actor at an OpenID provider (`sub`), at most [`ExternalId::MAX_BYTES`] of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalId {
    bytes: [u8; Self::MAX_BYTES],
    len: usize,
}

impl ExternalId {
    /// The maximum length; the rest of a longer id is cut off.
    pub const MAX_BYTES: usize = 120;

    /// The id without control characters.
    pub fn new(subject: &str) -> Self {
        let mut id = Self { bytes: [0; Self::MAX_BYTES], len: 0 };
        for c in subject.chars().filter(|c| !c.is_control()) {
            let end = id.len + c.len_utf8();
            let Some(place) = id.bytes.get_mut(id.len..end) else { break };
            c.encode_utf8(place);
            id.len = end;
        }
        id
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default())
    }
}

/// One change of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Sequence number, without gaps; a reader that has seen `seq` has seen all lower ones.
    pub seq: i64,
    /// Time of the change.
    pub at: Time,
    /// The owner of the subject; none if it is shared.
    pub organization_id: Option<OrganizationId>,
    /// The actor.
    pub actor: String,
    /// The kind of the subject.
    pub kind: String,
    /// The subject's id.
    pub subject: String,
    /// `kind.change`, for example `deployment.preempted`.
    #[serde(rename = "type")]
    pub change: String,
    /// The subject's state after the change, without secrets.
    pub data: serde_json::Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_id_keeps_whole_characters_up_to_its_limit() {
        assert_eq!(Actor::External(ExternalId::new("f:1:änn\n")).to_string(), "oidc:f:1:änn");
        let long = "ä".repeat(100);
        assert_eq!(ExternalId::new(&long).to_string(), "ä".repeat(60));
        assert_eq!(ExternalId::new("").to_string(), "");
    }
}
