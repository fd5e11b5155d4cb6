//! The protocol between the control plane and the agent of a cluster.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::deployment::{Reason, Spec};
use crate::log::LogLine;
use crate::world::UnitId;
use crate::{ClusterId, DeploymentId, OrganizationId};

/// Identifies a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReplicaId {
    /// The deployment.
    pub deployment: DeploymentId,
    /// The replica number, from 0.
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

/// The desired state of one replica on one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// The replica.
    pub replica: ReplicaId,
    /// The cluster.
    pub cluster: ClusterId,
    /// The node.
    pub node: String,
    /// Generation of the desired state, which reports echo.
    pub generation: i64,
    /// The organization whose loaded images the replica can use; none from older servers.
    #[serde(default)]
    pub organization: Option<OrganizationId>,
    /// The spec to run; none means remove it. (Replicas absent from a list are left alone.)
    pub run: Option<Spec>,
}

/// The observed state of one replica on one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The replica.
    pub replica: ReplicaId,
    /// The cluster.
    pub cluster: ClusterId,
    /// The generation that was observed.
    pub generation: i64,
    /// The observed state.
    pub observed: Observed,
    /// The last log lines of an ended replica, whose container is removed then.
    #[serde(default)]
    pub tail: Vec<LogLine>,
}

/// The state of a replica as observed by the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Observed {
    /// Starting.
    Starting,
    /// Running.
    Running {
        /// Addresses at which it is reachable.
        endpoints: Vec<String>,
    },
    /// Ended and about to be restarted.
    Restarting {
        /// How it ended and when it is restarted.
        #[serde(flatten, with = "reason_on_wire")]
        reason: Reason,
    },
    /// Ended successfully.
    Completed,
    /// Failed.
    Failed {
        /// The reason.
        #[serde(flatten, with = "reason_on_wire")]
        reason: Reason,
    },
    /// Removed.
    Gone,
}

/// Wire format of a reason between agents and servers: `reason` is the message, for versions
/// without codes, and `detail` the reason.
mod reason_on_wire {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::deployment::Reason;
    use crate::reason::StatusReason;

    #[derive(Serialize, Deserialize)]
    struct ReasonOnWire<D> {
        reason: String,
        #[serde(default = "Option::default")]
        detail: Option<D>,
    }

    pub(super) fn serialize<S: Serializer>(reason: &Reason, to: S) -> Result<S::Ok, S::Error> {
        ReasonOnWire { reason: reason.to_string(), detail: Some(reason) }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Reason, D::Error> {
        let ReasonOnWire { reason, detail } = ReasonOnWire::<Reason>::deserialize(from)?;
        Ok(detail.unwrap_or_else(|| Reason::reported(reason)))
    }
}
