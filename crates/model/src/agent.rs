//! What the control plane and the agent of a cluster say to each other.

use crate::deployment::Spec;
use crate::{ClusterId, DeploymentId};

/// What shall be true of one deployment on one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    /// Which deployment.
    pub deployment: DeploymentId,
    /// On which cluster.
    pub cluster: ClusterId,
    /// Counts the changes of this wish; reports carry it back.
    pub generation: i64,
    /// What shall run. Nothing: it shall be gone. (What is merely absent from a list is left alone.)
    pub run: Option<Spec>,
}

/// What is true of one deployment on one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which deployment.
    pub deployment: DeploymentId,
    /// On which cluster.
    pub cluster: ClusterId,
    /// The wish that this answers.
    pub generation: i64,
    /// What was found.
    pub observed: Observed,
}

/// How a deployment is doing, as its agent sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// On its way.
    Starting,
    /// It runs.
    Running {
        /// Where it can be reached.
        endpoints: Vec<String>,
    },
    /// It ran to its end.
    Completed,
    /// It can't run.
    Failed {
        /// Why, as a sentence that a user can act on.
        reason: String,
    },
    /// Nothing of it is left.
    Gone,
}
