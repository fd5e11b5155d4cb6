//! Events: what changed, when, by whom. One for every change of a subject.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;
use crate::{OrganizationId, Time, UserId};

/// What a subject can be.
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

/// Who makes a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A user, signed in.
    User(UserId),
    /// Somebody who is not signed in: creates an organization, uses an invite.
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
    /// Its place in the log. Grows by one; a reader that has seen `seq` never misses a lower one.
    pub seq: i64,
    /// When it happened.
    pub at: Time,
    /// Whose subject it is; none for what is shared.
    pub organization_id: Option<OrganizationId>,
    /// Who did it.
    pub actor: String,
    /// What kind of subject changed.
    pub kind: String,
    /// The subject's id.
    pub subject: String,
    /// `kind.change`, for example `deployment.preempted`.
    #[serde(rename = "type")]
    pub change: String,
    /// The subject's state after the change, without secrets.
    pub data: serde_json::Value,
}
