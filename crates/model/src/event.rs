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
            Actor::Anonymous => f.write_str("anonymous"),
            Actor::Worker(name) => write!(f, "worker:{name}"),
            Actor::Agent => f.write_str("agent"),
            Actor::Server => f.write_str("server"),
        }
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
