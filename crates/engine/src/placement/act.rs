//! Persists placement decisions.

use std::collections::{BTreeMap, BTreeSet};

use model::deployment::Reason;
use model::event::Actor;
use model::world::{Decisions, Preemption};
use model::{ClusterId, DeploymentId, Place, ReplicaId};
use store::deployment::placement;
use store::{Db, Tx};

use super::NAME;
use super::state::{PlacementState, ReplicaState};

/// A decision to persist.
enum Step {
    Place(DeploymentId, Vec<(u32, Place)>, Vec<String>),
    Preempt { victim: ReplicaId, by: ReplicaId, on: ClusterId, reason: Reason },
    Explain(DeploymentId, Reason),
}

impl Step {
    fn deployment(&self) -> DeploymentId {
        match self {
            Step::Place(id, ..) | Step::Explain(id, _) => *id,
            Step::Preempt { victim, .. } => victim.deployment,
        }
    }

    /// The deployments to read again if the step is rejected.
    fn affected(&self) -> Vec<DeploymentId> {
        match self {
            Step::Preempt { victim, by, .. } => vec![victim.deployment, by.deployment],
            other => vec![other.deployment()],
        }
    }

    fn clusters(&self) -> Vec<ClusterId> {
        match self {
            Step::Place(_, places, _) => places.iter().map(|(_, place)| place.cluster).collect(),
            Step::Preempt { on, .. } => vec![*on],
            Step::Explain(..) => Vec::new(),
        }
    }
}

impl PlacementState {
    /// Persists all decisions in one transaction; if one is outdated, one by one without it.
    pub(super) async fn act(&mut self, decisions: Decisions) -> store::Result<()> {
        let steps = self.steps(&decisions);
        self.assume_done(&decisions);
        match persist_all(&self.db, &steps).await {
            Ok(()) => return Ok(()),
            Err(error) if !is_outdated(&error) => {
                // Nothing was persisted, but the world assumes it was.
                self.is_stale = true;
                return Err(error);
            }
            Err(_) => {}
        }
        let mut outdated = BTreeSet::new();
        for step in &steps {
            match persist_all(&self.db, std::slice::from_ref(step)).await {
                Ok(()) => {}
                Err(error) if is_outdated(&error) => {
                    let id = step.deployment();
                    tracing::debug!(deployment.id = %id, %error, "placement decision outdated");
                    outdated.extend(step.affected());
                }
                Err(error) => {
                    self.is_stale = true;
                    return Err(error);
                }
            }
        }
        // Another writer took the capacity; its event may not be read yet.
        self.catch_up().await?;
        self.refresh_machines().await?;
        self.invalidate(outdated.into_iter().collect()).await
    }

    /// In the global lock order of rows.
    fn steps(&self, decisions: &Decisions) -> Vec<Step> {
        let mut places: BTreeMap<DeploymentId, Vec<(u32, Place)>> = BTreeMap::new();
        for start in &decisions.starts {
            let id = ReplicaId::from(start.unit);
            places.entry(id.deployment).or_default().push((id.number, start.place.clone()));
        }
        let mut reasons: BTreeMap<DeploymentId, Reason> = BTreeMap::new();
        for waiting in &decisions.pending {
            let id = ReplicaId::from(waiting.unit).deployment;
            if let Some(entry) = self.deployments.get(&id) {
                reasons.entry(id).or_insert_with(|| self.pending(entry, waiting.reason));
            }
        }
        let place = |(id, places): (DeploymentId, Vec<(u32, Place)>)| {
            let clusters = self.names(&places);
            Step::Place(id, places, clusters)
        };
        let mut steps: Vec<Step> = places.into_iter().map(place).collect();
        steps.extend(decisions.preemptions.iter().map(|preemption| self.preempt(preemption)));
        steps.extend(reasons.into_iter().map(|(id, reason)| Step::Explain(id, reason)));
        steps.sort_by_key(Step::deployment);
        steps
    }

    fn preempt(&self, preemption: &Preemption) -> Step {
        let (victim, by) = (preemption.victim.into(), preemption.by.into());
        let reason = self.preempted(victim, by);
        Step::Preempt { victim, by, on: preemption.place.cluster, reason }
    }

    fn assume_done(&mut self, decisions: &Decisions) {
        for start in &decisions.starts {
            self.assume(start.unit, ReplicaState::Placed(start.place.clone()));
        }
        let now = self.db.now();
        for preemption in &decisions.preemptions {
            self.assume(preemption.victim, ReplicaState::Stopping(preemption.place.clone()));
            let victim = self.deployments.get(&ReplicaId::from(preemption.victim).deployment);
            if victim.is_none_or(|entry| !entry.is_reserved) {
                self.count_preemption(preemption.by, now);
            }
        }
    }
}

async fn persist_all(db: &Db, steps: &[Step]) -> store::Result<()> {
    let mut tx = db.begin(Actor::Worker(NAME)).await?;
    let clusters: BTreeSet<ClusterId> = steps.iter().flat_map(Step::clusters).collect();
    for cluster in clusters {
        store::cluster::lock(&mut tx, cluster).await?;
    }
    for step in steps {
        persist(&mut tx, step).await?;
    }
    tx.commit().await
}

async fn persist(tx: &mut Tx, step: &Step) -> store::Result<()> {
    match step {
        Step::Place(id, places, clusters) => {
            placement::place(tx, *id, places, clusters).await.map(drop)
        }
        Step::Preempt { victim, by, reason, .. } => {
            placement::preempt(tx, *victim, *by, reason.clone()).await
        }
        Step::Explain(id, reason) => placement::set_reason(tx, *id, reason).await,
    }
}

/// Whether the decision was outdated.
fn is_outdated(error: &store::Error) -> bool {
    use store::Error::{Conflict, InsufficientCapacity, Limit, NotFound};
    matches!(error, Conflict(_) | Limit { .. } | NotFound { .. } | InsufficientCapacity { .. })
}
