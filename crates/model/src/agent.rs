//! What the control plane and the agent of a cluster say to each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::deployment::{Reason, Spec};
use crate::log::LogLine;
use crate::world::UnitId;
use crate::{ClusterId, DeploymentId};

/// One replica of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReplicaId {
    /// Whose.
    pub deployment: DeploymentId,
    /// Which, from 0.
    pub number: u32,
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.deployment, self.number)
    }
}

impl From<ReplicaId> for UnitId {
    fn from(id: ReplicaId) -> Self {
        UnitId { owner: id.deployment.0, replica: id.number }
    }
}

impl From<UnitId> for ReplicaId {
    fn from(id: UnitId) -> Self {
        ReplicaId { deployment: DeploymentId(id.owner), number: id.replica }
    }
}

/// What shall be true of one replica on one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// Which replica.
    pub replica: ReplicaId,
    /// On which cluster.
    pub cluster: ClusterId,
    /// On which of its nodes.
    pub node: String,
    /// Counts the changes of this wish; reports carry it back.
    pub generation: i64,
    /// What shall run. Nothing: it shall be gone. (What is merely absent from a list is left alone.)
    pub run: Option<Spec>,
}

/// What is true of one replica on one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which replica.
    pub replica: ReplicaId,
    /// On which cluster.
    pub cluster: ClusterId,
    /// The wish that this answers.
    pub generation: i64,
    /// What was found.
    pub observed: Observed,
    /// The last lines of its log, when it has ended: what ran it is cleared away then.
    #[serde(default)]
    pub tail: Vec<LogLine>,
}

/// How a replica is doing, as its agent sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Observed {
    /// On its way.
    Starting,
    /// It runs.
    Running {
        /// Where it can be reached.
        endpoints: Vec<String>,
    },
    /// It ended and will be started again.
    Restarting {
        /// How it ended and when it is restarted.
        #[serde(flatten, with = "spoken")]
        reason: Reason,
    },
    /// It ran to its end.
    Completed,
    /// It can't run.
    Failed {
        /// Why.
        #[serde(flatten, with = "spoken")]
        reason: Reason,
    },
    /// Nothing of it is left.
    Gone,
}

/// How agents and servers exchange a reason: `reason` is its message, for those that have no codes, and
/// `detail` the reason itself.
mod spoken {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::deployment::Reason;
    use crate::reason::Coded;

    #[derive(Serialize, Deserialize)]
    struct Spoken<D> {
        reason: String,
        #[serde(default = "Option::default")]
        detail: Option<D>,
    }

    pub(super) fn serialize<S: Serializer>(reason: &Reason, to: S) -> Result<S::Ok, S::Error> {
        Spoken { reason: reason.to_string(), detail: Some(reason) }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Reason, D::Error> {
        let Spoken { reason, detail } = Spoken::<Reason>::deserialize(from)?;
        Ok(detail.unwrap_or_else(|| Reason::reported(reason)))
    }
}
