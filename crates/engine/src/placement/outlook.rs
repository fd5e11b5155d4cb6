//! Answers: why something is where it is, and what would happen if something were asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::deployment::{Deployment, NewDeployment};
use model::world::{Explanation, Line, Outcome, Target, Unit, UnitId};
use model::{DeploymentId, InstanceId, OrganizationId, ReplicaId, Time, Xid};
use store::Db;
use tokio::sync::Mutex;

use super::known::{Known, unit};

/// How many replicas of one deployment are spoken of.
const MOST: usize = 100;

/// What placement can be asked. Cheap to clone.
#[derive(Clone)]
pub struct Outlook(Arc<Mutex<Known>>);

/// Why the replicas of a deployment are where they are.
#[derive(Debug, Clone)]
pub struct Explained {
    /// When this was so.
    pub at: Time,
    /// Each replica, by number; the first of very many.
    pub replicas: Vec<Explanation>,
    /// Whose those are that are named in it.
    pub owners: Owners,
}

/// Who owns which deployment.
pub type Owners = HashMap<Xid, OrganizationId>;

/// What would become of the replicas of a deployment.
#[derive(Debug, Clone)]
pub struct Foreseen {
    /// When this would be so.
    pub at: Time,
    /// Each replica, by number; the first of very many.
    pub replicas: Vec<(u32, Outcome)>,
    /// Whose those are that are named in it.
    pub owners: Owners,
}

impl Outlook {
    pub(super) fn new(known: Arc<Mutex<Known>>) -> Self {
        Self(known)
    }

    /// An outlook of its own, for a server that places nothing.
    pub fn alone(db: Db) -> Self {
        Self::new(Arc::new(Mutex::new(Known::new(db, super::Settings::default()))))
    }

    /// Why the replicas of a deployment are where they are.
    pub async fn explain(&self, id: DeploymentId) -> store::Result<Explained> {
        let mut known = self.0.lock().await;
        known.catch_up().await?;
        let at = known.db.now();
        let asked = known.asked.get(&id);
        let mut numbers: Vec<u32> =
            asked.map(|asked| asked.replicas.keys().copied().collect()).unwrap_or_default();
        numbers.sort_unstable();
        let units = numbers.into_iter().take(MOST).map(|replica| UnitId { owner: id.0, replica });
        let replicas: Vec<_> = units.filter_map(|unit| known.world.explain(unit, at)).collect();
        let owners = known.owners(replicas.iter().flat_map(|replica| &replica.blockers));
        Ok(Explained { at, replicas, owners })
    }

    /// Who waits and fits nowhere now, and the instance that the first of each line belongs to.
    pub async fn lines(&self) -> store::Result<Vec<(Line, Option<InstanceId>)>> {
        let mut known = self.0.lock().await;
        known.catch_up().await?;
        let lines = known.world.lines().into_iter();
        let instance = |line: &Line| known.asked.get(&DeploymentId(line.head.owner))?.instance;
        Ok(lines
            .map(|line| {
                let of = instance(&line);
                (line, of)
            })
            .collect())
    }

    /// What would happen if this were asked for now. Nothing is changed.
    pub async fn foresee(
        &self,
        organization: OrganizationId,
        new: &NewDeployment,
    ) -> store::Result<Foreseen> {
        let mut known = self.0.lock().await;
        known.catch_up().await?;
        let at = known.db.now();
        let most = u32::try_from(MOST).unwrap_or(u32::MAX);
        let units: Vec<Unit> = (0..new.spec.replicas.min(most))
            .map(|replica| trial(organization, new, replica, at))
            .collect();
        let outcomes = known.world.dry_run(&units, at);
        let mut replicas: Vec<(u32, Outcome)> =
            outcomes.into_iter().map(|(unit, outcome)| (unit.replica, outcome)).collect();
        replicas.sort_by_key(|(number, _)| *number);
        let owners = known.owners(replicas.iter().flat_map(|(_, outcome)| named(outcome)));
        Ok(Foreseen { at, replicas, owners })
    }
}

impl Outlook {
    /// Could each of these start elsewhere now, one after the other, if where it is takes nothing?
    pub async fn could_move(&self, of: &[(Deployment, ReplicaId)]) -> store::Result<Vec<bool>> {
        let mut known = self.0.lock().await;
        known.catch_up().await?;
        let at = known.db.now();
        // Its siblings keep their distance from the one that would come, too.
        let again = |id: &ReplicaId| UnitId { owner: id.deployment.0, replica: u32::MAX };
        let units: Vec<Unit> = of
            .iter()
            .map(|(deployment, id)| Unit { id: again(id), ..unit(deployment, None) })
            .collect();
        let outcomes: HashMap<UnitId, Outcome> =
            known.world.dry_run(&units, at).into_iter().collect();
        let could = |(_, id): &(Deployment, ReplicaId)| {
            let outcome = outcomes.get(&again(id));
            matches!(outcome, Some(Outcome::Start { .. } | Outcome::Displace { .. }))
        };
        Ok(of.iter().map(could).collect())
    }
}

impl Known {
    fn owners<'a>(&self, units: impl Iterator<Item = &'a UnitId>) -> Owners {
        let owner = |unit: &UnitId| Some((unit.owner, self.asked.get(&DeploymentId(unit.owner))?));
        units.filter_map(owner).map(|(id, asked)| (id, asked.organization)).collect()
    }
}

/// Who is named in an outcome.
fn named(outcome: &Outcome) -> &[UnitId] {
    match outcome {
        Outcome::Start { .. } => &[],
        Outcome::Displace { victims, .. } => victims,
        Outcome::Wait { explanation } => &explanation.blockers,
    }
}

/// A replica of something that nobody asked for yet.
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
        run_for: spec.run_for.map(|seconds| Duration::from_secs(seconds.into())),
        ends_at: None,
    }
}
