//! Queries: why a replica is where it is, and dry runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::deployment::{Deployment, NewDeployment};
use model::world::{Explanation, Outcome, PendingGroup, Target, Unit, UnitId};
use model::{DeploymentId, InstanceId, OrganizationId, ReplicaId, Time, Xid};
use store::Db;
use tokio::sync::Mutex;

use super::state::{PlacementState, unit};

/// Maximum number of replicas in an answer.
const MAX: usize = 100;

/// Read-only view of placement. Cheap to clone.
#[derive(Clone)]
pub struct PlacementView(Arc<Mutex<PlacementState>>);

/// Why the replicas of a deployment are where they are.
#[derive(Debug, Clone)]
pub struct PlacementExplanation {
    /// When the answer was computed.
    pub at: Time,
    /// The replicas by number, up to a maximum.
    pub replicas: Vec<Explanation>,
    /// The owners of the deployments that are mentioned.
    pub owners: Owners,
}

/// Organizations by deployment.
pub type Owners = HashMap<Xid, OrganizationId>;

/// Result of a dry run.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// When the answer was computed.
    pub at: Time,
    /// The replicas by number, up to a maximum.
    pub replicas: Vec<(u32, Outcome)>,
    /// The owners of the deployments that are mentioned.
    pub owners: Owners,
}

impl PlacementView {
    pub(super) fn new(state: Arc<Mutex<PlacementState>>) -> Self {
        Self(state)
    }

    /// A view with its own state, for a server that does not run placement.
    pub fn standalone(db: Db) -> Self {
        Self::new(Arc::new(Mutex::new(PlacementState::new(db, super::Settings::default()))))
    }

    /// Explains where the replicas of a deployment are, and why.
    pub async fn explain(&self, id: DeploymentId) -> store::Result<PlacementExplanation> {
        let mut state = self.0.lock().await;
        state.catch_up().await?;
        let at = state.db.now();
        let entry = state.deployments.get(&id);
        let mut numbers: Vec<u32> =
            entry.map(|entry| entry.replicas.keys().copied().collect()).unwrap_or_default();
        numbers.sort_unstable();
        let units = numbers.into_iter().take(MAX).map(|replica| UnitId { owner: id.0, replica });
        let replicas: Vec<_> = units.filter_map(|unit| state.world.explain(unit, at)).collect();
        let owners = state.owners(replicas.iter().flat_map(|replica| &replica.blockers));
        Ok(PlacementExplanation { at, replicas, owners })
    }

    /// The queues of pending replicas that fit nowhere now, with the instance of each queue's head.
    pub async fn queues(&self) -> store::Result<Vec<(PendingGroup, Option<InstanceId>)>> {
        let mut state = self.0.lock().await;
        state.catch_up().await?;
        let lines = state.world.pending_groups().into_iter();
        let instance =
            |line: &PendingGroup| state.deployments.get(&DeploymentId(line.head.owner))?.instance;
        Ok(lines
            .map(|line| {
                let of = instance(&line);
                (line, of)
            })
            .collect())
    }

    /// Dry run: what would happen to a new deployment. Changes nothing.
    pub async fn dry_run(
        &self,
        organization: OrganizationId,
        new: &NewDeployment,
    ) -> store::Result<DryRun> {
        let mut state = self.0.lock().await;
        state.catch_up().await?;
        let at = state.db.now();
        let most = u32::try_from(MAX).unwrap_or(u32::MAX);
        let units: Vec<Unit> = (0..new.spec.replicas.min(most))
            .map(|replica| trial(organization, new, replica, at))
            .collect();
        let outcomes = state.world.dry_run(&units, at);
        let mut replicas: Vec<(u32, Outcome)> =
            outcomes.into_iter().map(|(unit, outcome)| (unit.replica, outcome)).collect();
        replicas.sort_by_key(|(number, _)| *number);
        let owners = state.owners(replicas.iter().flat_map(|(_, outcome)| named(outcome)));
        Ok(DryRun { at, replicas, owners })
    }
}

impl PlacementView {
    /// Whether each of these replicas could start elsewhere now, in order, while it keeps its
    /// place.
    pub async fn can_move(&self, replicas: &[(Deployment, ReplicaId)]) -> store::Result<Vec<bool>> {
        let mut state = self.0.lock().await;
        state.catch_up().await?;
        let at = state.db.now();
        // A replica number that no sibling has: anti-affinity also counts the replica that moves.
        let moved = |id: &ReplicaId| UnitId { owner: id.deployment.0, replica: u32::MAX };
        let units: Vec<Unit> = replicas
            .iter()
            .map(|(deployment, id)| Unit { id: moved(id), ..unit(deployment, None) })
            .collect();
        let outcomes: HashMap<UnitId, Outcome> =
            state.world.dry_run(&units, at).into_iter().collect();
        let can_move = |(_, id): &(Deployment, ReplicaId)| {
            let outcome = outcomes.get(&moved(id));
            matches!(outcome, Some(Outcome::Start { .. } | Outcome::Preempt { .. }))
        };
        Ok(replicas.iter().map(can_move).collect())
    }
}

impl PlacementState {
    fn owners<'a>(&self, units: impl Iterator<Item = &'a UnitId>) -> Owners {
        let owner =
            |unit: &UnitId| Some((unit.owner, self.deployments.get(&DeploymentId(unit.owner))?));
        units.filter_map(owner).map(|(id, entry)| (id, entry.organization)).collect()
    }
}

/// The units that an outcome mentions.
fn named(outcome: &Outcome) -> &[UnitId] {
    match outcome {
        Outcome::Start { .. } => &[],
        Outcome::Preempt { victims, .. } => victims,
        Outcome::Wait { explanation } => &explanation.blockers,
    }
}

/// A replica of a hypothetical deployment.
fn trial(organization: OrganizationId, new: &NewDeployment, replica: u32, since: Time) -> Unit {
    let spec = &new.spec;
    Unit {
        id: UnitId { owner: Xid::new(0, [0; 5], 0), replica },
        organization,
        priority: new.priority,
        since,
        request: spec.resources.clone(),
        target: new.pinned_to.map_or(Target::Any, Target::Cluster),
        selector: spec.node_selector.clone(),
        is_spread: spec.anti_affinity,
        is_container: spec.has_workload(),
        run_for: spec.run_for.map(|seconds| Duration::from_secs(seconds.into())),
        ends_at: None,
    }
}
