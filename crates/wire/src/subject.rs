//! The part that clusters, deployments, instances and environments have in common, for clients that
//! find and follow one of them.
//!
//! Their answers and the `data` of their events are read alike: what only some of them have is
//! optional.

use model::Time;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::deployment::ReplicaStatus;

/// A subject of any kind.
#[derive(Debug, Clone, Deserialize)]
pub struct Subject {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// Its status.
    #[serde(default)]
    pub status: String,
    /// The kind of service; only instances have one.
    pub kind: Option<String>,
}

impl Subject {
    /// The name, or the id of a subject without one.
    pub fn label(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.id)
    }
}

/// The status of a subject of any kind.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct State {
    /// Its status.
    pub status: String,
    /// Why it has that status.
    pub status_reason: Option<String>,
    /// The code of that reason; servers of earlier releases send none.
    #[serde(default)]
    pub reason_code: String,
    /// When it last changed.
    pub updated_at: Option<Time>,
    /// How many deployments a cluster has.
    pub deployments: Option<i64>,
    /// Since when a cluster is being drained.
    pub draining_at: Option<Time>,
    /// How many replicas a deployment has.
    pub replicas: Option<usize>,
    /// The replicas of a deployment; events lack them.
    pub replica_statuses: Option<Vec<ReplicaStatus>>,
    /// How much of an environment is done, in percent.
    #[serde(default)]
    pub progress: u64,
    /// The resources of an environment; events lack them. A deployment has amounts of this name.
    #[serde(default, deserialize_with = "list_or_nothing")]
    pub resources: Vec<ResourceState>,
}

/// The status of a resource of an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ResourceState {
    /// Its name.
    pub name: String,
    /// Its environment; only events have it.
    pub environment_id: Option<String>,
    /// Its status.
    pub status: String,
    /// Why it has that status.
    #[serde(default)]
    pub status_reason: String,
    /// The subject that it stands for.
    pub link: Option<Link>,
    /// The end of its log if it failed; events lack it.
    #[serde(default)]
    pub last_log: Vec<String>,
}

/// The subject that a resource stands for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Link {
    /// What kind of subject.
    pub kind: String,
    /// Its id.
    pub id: String,
}

impl State {
    /// The state of a subject about which only the status is known.
    pub fn new(status: impl Into<String>) -> Self {
        Self { status: status.into(), ..Self::default() }
    }

    /// Why it has its status; empty if nobody says.
    pub fn reason(&self) -> &str {
        self.status_reason.as_deref().unwrap_or_default()
    }

    /// Whether it was before `other`: events may carry what an answer has shown already.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.updated_at.zip(other.updated_at).is_some_and(|(this, other)| this < other)
    }
}

fn list_or_nothing<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<ResourceState>, D::Error> {
    Value::deserialize(d).map(|value| serde_json::from_value(value).unwrap_or_default())
}
