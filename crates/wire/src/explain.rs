//! Placement explanations of deployments, and dry runs of new ones.

use std::collections::HashMap;

use model::world::{Explanation, Outcome, Place, Shortage, UnitId};
use model::{ClusterId, DeploymentId, OrganizationId, Resources, Time, Xid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::quota::{OrganizationQuota, QuotaExceeded};
use crate::variant;

/// The requesting organization. Responses name its own units and only count those of others.
#[derive(Debug, Clone, Copy)]
pub struct Viewer<'a> {
    /// The requesting organization.
    pub organization: OrganizationId,
    /// Organizations of the units, by deployment ID.
    pub owners: &'a HashMap<Xid, OrganizationId>,
}

/// Placement explanation of a deployment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeploymentExplanation {
    /// Deployment.
    #[schema(value_type = String)]
    pub deployment_id: DeploymentId,
    /// Time of the explanation.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Status.
    pub status: String,
    /// Human-readable reason for the status; empty when there is nothing to add.
    pub status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    #[serde(default)]
    #[schema(required)]
    pub reason_code: String,
    /// Replicas, ordered by number; at most 100.
    pub replicas: Vec<ReplicaExplanation>,
    /// Limited quotas of the resource types that the deployment requests: they limit further
    /// replicas.
    #[serde(default)]
    #[schema(required)]
    pub quotas: Vec<OrganizationQuota>,
}

/// Placement explanation of a replica.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplicaExplanation {
    /// Replica number.
    pub number: u32,
    /// One of `placed`, `stopping`, `not_now`, or `never` (no eligible node is large enough).
    pub verdict: String,
    /// Cause of the wait: `short` (insufficient capacity), `behind` (others are ahead in the
    /// queue), `yielding` (preemption victims are stopping), `budget` (the organization's hourly
    /// preemption budget is used up), `fair_share` (organizations within their fair share are not
    /// preempted), `never`.
    pub wait: Option<String>,
    /// Position in the queue, starting at 1.
    pub position: Option<usize>,
    /// Cluster where the replica runs or where capacity is reserved for it.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// Node on that cluster.
    pub node: Option<String>,
    /// Shortages on the nodes with the smallest shortage.
    pub shortages: Vec<NodeShortage>,
    /// Replicas of the organization that must end first, soonest first.
    pub blockers: Vec<Blocker>,
    /// Number of other organizations' replicas that must end as well.
    pub other_blockers: usize,
    /// Earliest start if all blockers end as planned (`run_for`) and nothing ahead in the queue
    /// takes the capacity.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub earliest: Option<Time>,
}

impl ReplicaExplanation {
    /// Creates the explanation, limited to what `viewer` may see.
    pub fn new(explanation: Explanation, viewer: Viewer<'_>) -> Self {
        let (blockers, other_blockers) = viewer.own_and_others(&explanation.blockers);
        let (cluster_id, node) = explanation.place.as_ref().map(parts).unzip();
        Self {
            number: explanation.unit.replica,
            verdict: variant(explanation.verdict),
            wait: explanation.wait.map(variant),
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

/// Shortage on one node.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NodeShortage {
    /// Cluster of the node.
    #[schema(value_type = String)]
    pub cluster_id: ClusterId,
    /// Node name.
    pub node: String,
    /// Missing amounts; empty if only labels, anti-affinity or the machine exclude the node.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub missing: Resources,
    /// Missing amounts of the machine that runs the cluster's containers, if its capacity is
    /// counted.
    #[schema(value_type = BTreeMap<String, f64>)]
    #[serde(default)]
    pub missing_on_machine: Resources,
    /// Whether the node or its machine is too small even when empty.
    pub too_small: bool,
}

impl From<Shortage> for NodeShortage {
    fn from(shortage: Shortage) -> Self {
        let Shortage { place, missing, missing_on_machine, is_too_small } = shortage;
        let (cluster_id, node) = parts(&place);
        Self { cluster_id, node, missing, missing_on_machine, too_small: is_too_small }
    }
}

fn parts(place: &Place) -> (ClusterId, String) {
    (place.cluster, place.node.to_string())
}

/// A replica that occupies the needed capacity.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Blocker {
    /// Deployment.
    #[schema(value_type = String)]
    pub deployment_id: DeploymentId,
    /// Replica number.
    pub replica: u32,
}

impl Viewer<'_> {
    /// Splits `units` into the viewer's own and the number of others.
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

/// Dry run of a new deployment.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Forecast)]
pub struct DryRun {
    /// Always true: nothing was created.
    pub dry_run: bool,
    /// Time of the dry run.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Replicas, ordered by number; at most 100.
    pub replicas: Vec<ReplicaDryRun>,
    /// Quotas of the organization that the deployment would exceed: it would be refused.
    #[serde(default)]
    #[schema(required)]
    pub exceeded_quotas: Vec<QuotaExceeded>,
}

/// Dry-run result for a replica.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ReplicaForecast)]
pub struct ReplicaDryRun {
    /// Replica number.
    pub number: u32,
    /// `start` (immediately), `displace` (after preempting others) or `wait`.
    pub outcome: String,
    /// Cluster where the replica would be placed.
    #[schema(value_type = Option<String>)]
    pub cluster_id: Option<ClusterId>,
    /// Node on that cluster.
    pub node: Option<String>,
    /// Replicas of the organization that would be preempted.
    pub victims: Vec<Blocker>,
    /// Number of other organizations' replicas that would be preempted as well.
    pub other_victims: usize,
    /// Explanation of the wait; at most one entry.
    pub waits: Vec<ReplicaExplanation>,
}

impl ReplicaDryRun {
    /// Creates the result, limited to what `viewer` may see.
    pub fn new(number: u32, outcome: Outcome, viewer: Viewer<'_>) -> Self {
        let (outcome, place, victims, waits) = match outcome {
            Outcome::Start { place } => ("start", Some(place), Vec::new(), None),
            Outcome::Preempt { place, victims } => ("displace", Some(place), victims, None),
            Outcome::Wait { explanation } => ("wait", None, Vec::new(), Some(explanation)),
        };
        let (cluster_id, node) = place.as_ref().map(parts).unzip();
        let (victims, other_victims) = viewer.own_and_others(&victims);
        let waits = waits.into_iter().map(|why| ReplicaExplanation::new(*why, viewer)).collect();
        let outcome = outcome.to_owned();
        Self { number, outcome, cluster_id, node, victims, other_victims, waits }
    }
}
