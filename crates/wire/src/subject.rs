//! Fields common to clusters, deployments, instances and environments, for clients that find and
//! follow one of them.
//!
//! Responses and the `data` of events share these types: fields that only some have are optional.

use model::Time;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::deployment::ReplicaStatus;

/// A subject of any kind.
#[derive(Debug, Clone, Deserialize)]
pub struct Subject {
    /// Unique identifier.
    pub id: String,
    /// Name.
    pub name: Option<String>,
    /// Status.
    #[serde(default)]
    pub status: String,
    /// Kind of service; only for instances.
    pub kind: Option<String>,
}

impl Subject {
    /// Returns the name, or the ID of a subject without one.
    pub fn label(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.id)
    }
}

/// The status of a subject of any kind.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct State {
    /// Status.
    pub status: String,
    /// Human-readable reason for the status.
    pub status_reason: Option<String>,
    /// Machine-readable reason code; servers of earlier releases send none.
    #[serde(default)]
    pub reason_code: String,
    /// Time of the last change.
    pub updated_at: Option<Time>,
    /// Number of deployments of a cluster.
    pub deployments: Option<i64>,
    /// Time when a cluster began draining.
    pub draining_at: Option<Time>,
    /// Image of a deployment.
    pub image: Option<String>,
    /// Number of replicas of a deployment.
    pub replicas: Option<usize>,
    /// Replicas of a deployment; absent from events.
    pub replica_statuses: Option<Vec<ReplicaStatus>>,
    /// Progress of an environment in percent.
    #[serde(default)]
    pub progress: u64,
    /// Resources of an environment; absent from events. A deployment's field of this name holds
    /// amounts.
    #[serde(default, deserialize_with = "list_or_empty")]
    pub resources: Vec<ResourceState>,
}

/// The status of a resource of an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ResourceState {
    /// Name.
    pub name: String,
    /// Environment; only in events.
    pub environment_id: Option<String>,
    /// Status.
    pub status: String,
    /// Human-readable reason for the status.
    #[serde(default)]
    pub status_reason: String,
    /// Object created for the resource.
    pub link: Option<Link>,
    /// Last lines of the log if the resource failed; absent from events.
    #[serde(default)]
    pub last_log: Vec<String>,
}

/// The object created for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Link {
    /// Kind of object.
    pub kind: String,
    /// Unique identifier.
    pub id: String,
}

impl State {
    /// Creates a state with only a status.
    pub fn new(status: impl Into<String>) -> Self {
        Self { status: status.into(), ..Self::default() }
    }

    /// Human-readable reason for the status; empty if there is none.
    pub fn reason(&self) -> &str {
        self.status_reason.as_deref().unwrap_or_default()
    }

    /// Whether this state is older than `other`: events may repeat what a response already showed.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.updated_at.zip(other.updated_at).is_some_and(|(this, other)| this < other)
    }
}

fn list_or_empty<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<ResourceState>, D::Error> {
    Value::deserialize(d).map(|value| serde_json::from_value(value).unwrap_or_default())
}
