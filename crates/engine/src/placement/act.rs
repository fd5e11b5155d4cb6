//! Makes durable what was decided.

use std::collections::{BTreeMap, BTreeSet};

use model::deployment::Reason;
use model::event::Actor;
use model::world::{Decisions, Preemption};
use model::{ClusterId, DeploymentId, Place, ReplicaId};
use store::deployment::placing;
use store::{Db, Tx};

use super::NAME;
use super::known::{Known, Seen};

/// A decision, ready to be made durable.
enum Step {
    Place(DeploymentId, Vec<(u32, Place)>, Vec<String>),
    Preempt { victim: ReplicaId, by: ReplicaId, on: ClusterId, reason: Reason },
    Explain(DeploymentId, Reason),
}

impl Step {
    fn about(&self) -> DeploymentId {
        match self {
            Step::Place(id, ..) | Step::Explain(id, _) => *id,
            Step::Preempt { victim, .. } => victim.deployment,
        }
    }

    /// Who is looked at again if it can't be done.
    fn concerns(&self) -> Vec<DeploymentId> {
        match self {
            Step::Preempt { victim, by, .. } => vec![victim.deployment, by.deployment],
            other => vec![other.about()],
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

impl Known {
    /// All at once; if something has changed meanwhile, one by one, leaving out what no longer holds.
    pub(super) async fn act(&mut self, decisions: Decisions) -> store::Result<()> {
        let steps = self.steps(&decisions);
        self.assume_done(&decisions);
        match in_one_transaction(&self.db, &steps).await {
            Ok(()) => return Ok(()),
            Err(error) if !is_news(&error) => {
                // Nothing of it was done, though the world takes it as done.
                self.is_stale = true;
                return Err(error);
            }
            Err(_) => {}
        }
        let mut overtaken = BTreeSet::new();
        for step in &steps {
            match in_one_transaction(&self.db, std::slice::from_ref(step)).await {
                Ok(()) => {}
                Err(error) if is_news(&error) => {
                    tracing::debug!(deployment.id = %step.about(), %error, "it was overtaken");
                    overtaken.extend(step.concerns());
                }
                Err(error) => {
                    self.is_stale = true;
                    return Err(error);
                }
            }
        }
        // Capacity that is not there was taken by somebody else: his event may not be read yet.
        self.catch_up().await?;
        self.look_again(overtaken.into_iter().collect()).await
    }

    /// In the order in which rows are locked everywhere.
    fn steps(&self, decisions: &Decisions) -> Vec<Step> {
        let mut places: BTreeMap<DeploymentId, Vec<(u32, Place)>> = BTreeMap::new();
        for start in &decisions.starts {
            let id = ReplicaId::from(start.unit);
            places.entry(id.deployment).or_default().push((id.number, start.place.clone()));
        }
        let mut reasons: BTreeMap<DeploymentId, Reason> = BTreeMap::new();
        for waiting in &decisions.waits {
            let id = ReplicaId::from(waiting.unit).deployment;
            if let Some(asked) = self.asked.get(&id) {
                reasons.entry(id).or_insert_with(|| self.pending(asked, waiting.wait));
            }
        }
        let place = |(id, places): (DeploymentId, Vec<(u32, Place)>)| {
            let clusters = self.names(&places);
            Step::Place(id, places, clusters)
        };
        let mut steps: Vec<Step> = places.into_iter().map(place).collect();
        steps.extend(decisions.preemptions.iter().map(|preemption| self.preempt(preemption)));
        steps.extend(reasons.into_iter().map(|(id, reason)| Step::Explain(id, reason)));
        steps.sort_by_key(Step::about);
        steps
    }

    fn preempt(&self, preemption: &Preemption) -> Step {
        let (victim, by) = (preemption.victim.into(), preemption.by.into());
        let reason = self.preempted(victim, by);
        Step::Preempt { victim, by, on: preemption.place.cluster, reason }
    }

    fn assume_done(&mut self, decisions: &Decisions) {
        for start in &decisions.starts {
            self.assume(start.unit, Seen::Placed(start.place.clone()));
        }
        let now = self.db.now();
        for preemption in &decisions.preemptions {
            self.assume(preemption.victim, Seen::Stopping(preemption.place.clone()));
            let victim = self.asked.get(&ReplicaId::from(preemption.victim).deployment);
            if victim.is_none_or(|asked| !asked.is_reserved) {
                self.count_preemption(preemption.by, now);
            }
        }
    }
}

async fn in_one_transaction(db: &Db, steps: &[Step]) -> store::Result<()> {
    let mut tx = db.begin(Actor::Worker(NAME)).await?;
    let clusters: BTreeSet<ClusterId> = steps.iter().flat_map(Step::clusters).collect();
    for cluster in clusters {
        store::cluster::lock(&mut tx, cluster).await?;
    }
    for step in steps {
        take(&mut tx, step).await?;
    }
    tx.commit().await
}

async fn take(tx: &mut Tx, step: &Step) -> store::Result<()> {
    match step {
        Step::Place(id, places, clusters) => {
            placing::place(tx, *id, places, clusters).await.map(drop)
        }
        Step::Preempt { victim, by, reason, .. } => {
            placing::preempt(tx, *victim, *by, reason.clone()).await
        }
        Step::Explain(id, reason) => placing::set_reason(tx, *id, reason).await,
    }
}

/// Did somebody else change what it was decided from?
fn is_news(error: &store::Error) -> bool {
    use store::Error::{Conflict, Limit, NotFound, Short};
    matches!(error, Conflict(_) | Limit { .. } | NotFound { .. } | Short { .. })
}
