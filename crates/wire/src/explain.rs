//! Why a deployment waits, and what would happen if one were asked for.

use std::collections::HashMap;

use model::world::{Explanation, Outcome, Place, Shortage, UnitId};
use model::{ClusterId, DeploymentId, OrganizationId, Resources, Time, Xid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word;

/// The organization that asks, and whose the units are that it may hear of: others' are only counted.
#[derive(Debug, Clone, Copy)]
pub struct Viewer<'a> {
    /// The organization that asks.
    pub organization: OrganizationId,
    /// The organizations of the units, by the id of the deployment.
    pub owners: &'a HashMap<Xid, OrganizationId>,
}

/// Why a deployment is where it is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeploymentExplanation {
    /// The deployment.
    #[schema(value_type = String)]
    pub deployment_id: DeploymentId,
    /// When this was so.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Where it is on its way.
    pub status: String,
    /// Why it has that status; empty if there is nothing to add.
    pub status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`: for programs, which never read messages.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Its replicas, by number; the first 100.
    pub replicas: Vec<ReplicaExplanation>,
}

/// Why a replica is where it is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplicaExplanation {
    /// Which.
    pub number: u32,
    /// `placed`, `stopping`, `not_now` or `never`: no node that it may use is large enough.
    pub verdict: String,
    /// Why it waits: `short` of room, `behind` others who ask for the same, `yielding`: others stop
    /// for it, `budget`: its organization has displaced as many as it may in an hour, `never`.
    pub wait: Option<String>,
    /// Its place in the queue, from 1.
    pub position: Option<usize>,
    /// The cluster where it is, or where room is kept for it.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// The node there.
    pub node: Option<String>,
    /// What is missing, on the nodes where that is least.
    pub shortages: Vec<NodeShortage>,
    /// Which of the organization's own would have to end first, the soonest first.
    pub blockers: Vec<Blocker>,
    /// How many of others' would have to end, too.
    pub other_blockers: usize,
    /// When it can start if all ends as planned (`run_for`) and nobody before it takes the room.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub earliest: Option<Time>,
}

impl ReplicaExplanation {
    /// What `viewer` may know of it.
    pub fn new(explanation: Explanation, viewer: Viewer<'_>) -> Self {
        let (blockers, other_blockers) = viewer.own_and_others(&explanation.blockers);
        let (cluster_id, node) = explanation.place.as_ref().map(parts).unzip();
        Self {
            number: explanation.unit.replica,
            verdict: word(explanation.verdict),
            wait: explanation.wait.map(word),
            position: explanation.position,
            cluster_id,
            node,
            shortages: explanation.shortages.into_iter().map(NodeShortage::from).collect(),
            blockers,
            other_blockers,
            earliest: explanation.earliest,
        }
    }
}

/// What is missing on one node.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NodeShortage {
    /// Its cluster.
    #[schema(value_type = String)]
    pub cluster_id: ClusterId,
    /// Its name there.
    pub node: String,
    /// How much of what; nothing if only labels or other replicas are in the way.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub missing: Resources,
    /// Is it too small, even when empty?
    pub too_small: bool,
}

impl From<Shortage> for NodeShortage {
    fn from(shortage: Shortage) -> Self {
        let Shortage { place, missing, is_too_small } = shortage;
        let (cluster_id, node) = parts(&place);
        Self { cluster_id, node, missing, too_small: is_too_small }
    }
}

fn parts(place: &Place) -> (ClusterId, String) {
    (place.cluster, place.node.to_string())
}

/// Somebody who is in the way.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Blocker {
    /// The deployment.
    #[schema(value_type = String)]
    pub deployment_id: DeploymentId,
    /// Which of its replicas.
    pub replica: u32,
}

impl Viewer<'_> {
    /// The viewer's own units by name, and the number of the others.
    fn own_and_others(&self, units: &[UnitId]) -> (Vec<Blocker>, usize) {
        let is_own = |unit: &&UnitId| self.owners.get(&unit.owner) == Some(&self.organization);
        let name = |unit: &UnitId| Blocker {
            deployment_id: DeploymentId(unit.owner),
            replica: unit.replica,
        };
        let own: Vec<Blocker> = units.iter().filter(is_own).map(name).collect();
        let others = units.len() - own.len();
        (own, others)
    }
}

/// What would happen if a deployment were asked for now.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// Always true: nothing was done.
    pub dry_run: bool,
    /// When this would be so.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Its replicas, by number; the first 100.
    pub replicas: Vec<ReplicaForecast>,
}

/// What would become of a replica.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplicaForecast {
    /// Which.
    pub number: u32,
    /// `start` at once, `displace` others first, or `wait`.
    pub outcome: String,
    /// The cluster where it would go.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// The node there.
    pub node: Option<String>,
    /// Which of the organization's own would have to yield.
    pub victims: Vec<Blocker>,
    /// How many of others' would have to yield, too.
    pub other_victims: usize,
    /// Why it would wait; one entry if it would.
    pub waits: Vec<ReplicaExplanation>,
}

impl ReplicaForecast {
    /// What `viewer` may know of it.
    pub fn new(number: u32, outcome: Outcome, viewer: Viewer<'_>) -> Self {
        let (outcome, place, victims, waits) = match outcome {
            Outcome::Start { place } => ("start", Some(place), Vec::new(), None),
            Outcome::Displace { place, victims } => ("displace", Some(place), victims, None),
            Outcome::Wait { explanation } => ("wait", None, Vec::new(), Some(explanation)),
        };
        let (cluster_id, node) = place.as_ref().map(parts).unzip();
        let (victims, other_victims) = viewer.own_and_others(&victims);
        let waits = waits.into_iter().map(|why| ReplicaExplanation::new(*why, viewer)).collect();
        let outcome = outcome.to_owned();
        Self { number, outcome, cluster_id, node, victims, other_victims, waits }
    }
}
