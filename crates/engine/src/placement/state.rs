//! State of placement, maintained from the event log.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use model::cluster::{Cluster, Provider, Status};
use model::deployment::{Deployment, MAX_PRIORITY};
use model::event::Kind;
use model::replica::Replica;
use model::world::{self, Budget, Target, Unit, UnitId, World};
use model::{
    ClusterId, DeploymentId, InstanceId, OrganizationId, Place, ReplicaId, Resources, Time,
};
use store::deployment::{eviction, placement};
use store::{Db, Page, Scope, event};

use super::Settings;

const HOUR: Duration = Duration::from_hours(1);
/// Rows per read.
const BATCH: i64 = 1000;
/// Maximum number of batches before the next decision.
const MAX_BATCHES: usize = 4;

/// Where a replica is, as the world knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplicaState {
    Waiting,
    Placed(Place),
    Stopping(Place),
    /// Ended: holds no capacity.
    Ended,
}

/// What placement needs to know of a deployment, besides the world.
#[derive(Debug, Clone)]
pub(super) struct DeploymentEntry {
    pub(super) name: String,
    pub(super) organization: OrganizationId,
    pub(super) priority: i64,
    pub(super) pinned_to: Option<ClusterId>,
    pub(super) request: Resources,
    /// Whether it can't be preempted once placed: the world then needs an update.
    pub(super) is_fixed: bool,
    /// The instance that it belongs to.
    pub(super) instance: Option<InstanceId>,
    /// Whether it only reserves capacity: preempting it costs no budget.
    pub(super) is_reserved: bool,
    /// Whether its replicas take from their machine.
    pub(super) takes_machine: bool,
    pub(super) replicas: HashMap<u32, ReplicaState>,
}

/// The world, and the data to explain it.
pub(super) struct PlacementState {
    pub(super) db: Db,
    pub(super) settings: Settings,
    pub(super) world: World,
    pub(super) clusters: HashMap<ClusterId, Cluster>,
    /// Names of the machines whose capacity is counted.
    machines: BTreeSet<String>,
    pub(super) deployments: HashMap<DeploymentId, DeploymentEntry>,
    /// Preemptions of the last hour, by the organization that caused them.
    preemptions: VecDeque<(Time, OrganizationId)>,
    /// Organizations whose budget the world knows.
    budgeted: HashSet<OrganizationId>,
    /// Position in the event log up to which the state is complete.
    seq: i64,
    /// Whether everything must be read again.
    pub(super) is_stale: bool,
}

impl PlacementState {
    pub(super) fn new(db: Db, settings: Settings) -> Self {
        Self {
            db,
            world: World::new(settings.world.clone()),
            settings,
            clusters: HashMap::new(),
            machines: BTreeSet::new(),
            deployments: HashMap::new(),
            preemptions: VecDeque::new(),
            budgeted: HashSet::new(),
            seq: 0,
            is_stale: true,
        }
    }

    /// Applies the changes since the last call.
    pub(super) async fn catch_up(&mut self) -> store::Result<()> {
        self.db.number_events().await?;
        if self.is_stale {
            self.reload().await?;
        }
        // Bounded: constant writes must not delay decisions.
        for _ in 0..MAX_BATCHES {
            let changes = event::changes(&mut self.db.read().await?, self.seq, BATCH).await?;
            let Some((last, ..)) = changes.last() else { break };
            let last = *last;
            self.apply_changes(&changes).await?;
            self.seq = last;
        }
        Ok(())
    }

    async fn apply_changes(&mut self, changes: &[(i64, String, String)]) -> store::Result<()> {
        let of = |kind: Kind| {
            let own = changes.iter().filter(move |change| change.1 == kind.as_str());
            own.map(|change| change.2.as_str())
        };
        let clusters: BTreeSet<ClusterId> =
            of(Kind::Cluster).filter_map(|id| id.parse().ok()).collect();
        let deployments: BTreeSet<DeploymentId> =
            of(Kind::Deployment).filter_map(|id| id.parse().ok()).collect();
        let organizations: BTreeSet<OrganizationId> =
            of(Kind::Organization).filter_map(|id| id.parse().ok()).collect();
        for id in organizations {
            self.refresh_weight(id).await?;
        }
        if !clusters.is_empty() {
            self.refresh_machines().await?;
        }
        for id in clusters {
            self.refresh_cluster(id).await?;
        }
        self.refresh(deployments.into_iter().collect()).await
    }

    async fn refresh_weight(&mut self, id: OrganizationId) -> store::Result<()> {
        match store::organization::get(&mut self.db.read().await?, Scope::All, id).await {
            Ok(organization) => self.world.set_weight(id, organization.weight),
            Err(store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the machines. Which clusters take from them is decided when clusters are read.
    pub(super) async fn refresh_machines(&mut self) -> store::Result<()> {
        let machines = store::machine::list(&mut self.db.read().await?).await?;
        let names: BTreeSet<String> = machines.iter().map(|machine| machine.name.clone()).collect();
        let known = std::mem::replace(&mut self.machines, names);
        for machine in machines {
            self.world.set_machine(&machine.name, &machine.size, &machine.leftovers);
        }
        if known != self.machines {
            let clusters: Vec<Cluster> = self.clusters.values().cloned().collect();
            for cluster in clusters.into_iter().filter(|c| c.provider == Provider::Local) {
                let mut read = self.db.read().await?;
                let leftovers = eviction::leftovers(&mut read, cluster.id).await?;
                drop(read);
                self.update_cluster(cluster, &leftovers);
            }
        }
        Ok(())
    }

    async fn refresh_cluster(&mut self, id: ClusterId) -> store::Result<()> {
        let mut read = self.db.read().await?;
        match store::cluster::get(&mut read, Scope::All, id).await {
            Ok(cluster) => {
                let leftovers = eviction::leftovers(&mut read, id).await?;
                self.update_cluster(cluster, &leftovers);
            }
            Err(store::Error::NotFound { .. }) => {
                self.world.remove_cluster(id);
                self.clusters.remove(&id);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) async fn refresh(&mut self, ids: Vec<DeploymentId>) -> store::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let deployments = placement::by_ids(&mut self.db.read().await?, &ids).await?;
        let found: HashSet<DeploymentId> = deployments.iter().map(|(d, _)| d.id).collect();
        for (deployment, replicas) in &deployments {
            self.update_deployment(deployment, replicas);
        }
        for id in ids.into_iter().filter(|id| !found.contains(id)) {
            let removed =
                self.deployments.remove(&id).map(|entry| entry.replicas).unwrap_or_default();
            for number in removed.into_keys() {
                self.world.remove(ReplicaId { deployment: id, number }.into());
            }
        }
        Ok(())
    }

    async fn reload(&mut self) -> store::Result<()> {
        let (db, settings) = (self.db.clone(), self.settings.clone());
        let mut new = Self::new(db.clone(), settings);
        let mut read = db.read().await?;
        new.seq = event::last(&mut read).await?;
        for (organization, at) in placement::preemptions(&mut read, db.now() - HOUR).await? {
            new.preemptions.push_back((at, organization));
        }
        for (organization, weight) in store::organization::weights(&mut read).await? {
            new.world.set_weight(organization, weight);
        }
        new.refresh_machines().await?;
        let mut page = Page::first(BATCH);
        loop {
            let filter = store::cluster::Filter::default();
            let part = store::cluster::list(&mut read, Scope::All, &filter, &page).await?;
            let Some(last) = part.last() else { break };
            page.after = Some(last.id.to_string());
            for cluster in part {
                let leftovers = eviction::leftovers(&mut read, cluster.id).await?;
                new.update_cluster(cluster, &leftovers);
            }
        }
        let mut page = Page::first(BATCH);
        loop {
            let part = placement::list(&mut read, &page).await?;
            let Some((last, _)) = part.last() else { break };
            page.after = Some(last.id.to_string());
            for (deployment, replicas) in &part {
                new.update_deployment(deployment, replicas);
            }
        }
        new.is_stale = false;
        *self = new;
        Ok(())
    }

    fn update_cluster(&mut self, cluster: Cluster, leftovers: &[(String, Resources)]) {
        let nodes = cluster.nodes.iter().map(|node| {
            let mut taken: Resources =
                node.capacity.iter().map(|(kind, c)| (kind.clone(), c.manual)).collect();
            let left = leftovers.iter().filter(|(name, _)| *name == node.name);
            left.for_each(|(_, request)| taken.add(request));
            world::Node {
                name: node.name.clone(),
                capacity: node.capacity.iter().map(|(kind, c)| (kind.clone(), c.total)).collect(),
                manually_reserved: taken,
                labels: node.labels.clone(),
            }
        });
        self.world.set_cluster(world::Cluster {
            id: cluster.id,
            owner: cluster.organization_id,
            machine: self.machine_of(&cluster).map(str::to_owned),
            is_ready: cluster.status == Status::Ready && cluster.draining_at.is_none(),
            labels: labels(&cluster),
            nodes: nodes.collect(),
        });
        self.clusters.insert(cluster.id, cluster);
    }

    /// The machine that containers on a cluster take from, if it is counted.
    pub(super) fn machine_of(&self, cluster: &Cluster) -> Option<&str> {
        let name = (cluster.provider == Provider::Local).then_some(store::machine::LOCAL)?;
        self.machines.get(name).map(String::as_str)
    }

    fn update_deployment(&mut self, deployment: &Deployment, replicas: &[Replica]) {
        let previous = self.deployments.remove(&deployment.id);
        let is_changed =
            previous.as_ref().is_none_or(|entry| entry.priority != deployment.priority);
        let mut before = previous.map(|entry| entry.replicas).unwrap_or_default();
        let mut entry = DeploymentEntry::new(deployment);
        if self.budgeted.insert(entry.organization) {
            self.set_budget(entry.organization);
        }
        for replica in replicas {
            let (id, now) = (replica.id, replica_state(replica));
            if is_changed || before.get(&id.number) != Some(&now) {
                let unit = Unit { id: id.into(), ..unit(deployment, replica.place.as_ref()) };
                self.update_replica(&unit, replica, &now);
            }
            before.remove(&id.number);
            entry.replicas.insert(id.number, now);
        }
        for number in before.into_keys() {
            self.world.remove(ReplicaId { deployment: deployment.id, number }.into());
        }
        self.deployments.insert(deployment.id, entry);
    }

    fn update_replica(&mut self, unit: &Unit, replica: &Replica, now: &ReplicaState) {
        let since = replica.placed_at.unwrap_or(Time(0));
        match now {
            ReplicaState::Waiting => self.world.add_pending(unit),
            ReplicaState::Placed(place) => self.world.set_placed(unit, place.clone(), since),
            ReplicaState::Stopping(place) => {
                self.world.set_placed(unit, place.clone(), since);
                self.world.set_stopping(unit.id, None);
            }
            ReplicaState::Ended => self.world.remove(unit.id),
        }
    }

    /// Records what the world assumes as done, so that its event changes nothing.
    pub(super) fn assume(&mut self, id: UnitId, now: ReplicaState) {
        let id = ReplicaId::from(id);
        if let Some(entry) =
            self.deployments.get_mut(&id.deployment).filter(|entry| !entry.is_fixed)
        {
            entry.replicas.insert(id.number, now);
        }
    }

    /// Invalidates the state of these deployments and reads them again.
    pub(super) async fn invalidate(&mut self, ids: Vec<DeploymentId>) -> store::Result<()> {
        for id in &ids {
            if let Some(entry) = self.deployments.get_mut(id) {
                entry.replicas.values_mut().for_each(|state| *state = ReplicaState::Ended);
            }
        }
        self.refresh(ids).await
    }

    pub(super) fn count_preemption(&mut self, by: UnitId, at: Time) {
        if let Some(entry) = self.deployments.get(&ReplicaId::from(by).deployment) {
            self.preemptions.push_back((at, entry.organization));
        }
    }

    /// Removes preemptions older than an hour from the budgets.
    pub(super) fn count_budgets(&mut self, now: Time) {
        let old = self.preemptions.iter().take_while(|(at, _)| now.since(*at) >= HOUR).count();
        let over: HashSet<OrganizationId> = self.preemptions.drain(..old).map(|p| p.1).collect();
        for organization in over {
            self.set_budget(organization);
        }
    }

    fn set_budget(&mut self, organization: OrganizationId) {
        let Some(limit) = self.settings.preemptions_per_hour else { return };
        let used = self.preemptions.iter().filter(|(_, other)| *other == organization).count();
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        self.world.set_budget(organization, Some(Budget { limit, used }));
    }
}

impl DeploymentEntry {
    fn new(deployment: &Deployment) -> Self {
        Self {
            name: deployment.name.clone(),
            organization: deployment.organization_id,
            priority: deployment.priority,
            pinned_to: deployment.pinned_to,
            request: deployment.spec.resources.clone(),
            is_fixed: deployment.instance_id.is_some(),
            instance: deployment.instance_id,
            is_reserved: deployment.reserved.is_some(),
            takes_machine: deployment.takes_machine(),
            replicas: HashMap::new(),
        }
    }
}

/// The labels of a cluster, including its cloud provider and region.
fn labels(cluster: &Cluster) -> BTreeMap<String, String> {
    let place = [("cloud_provider", &cluster.cloud_provider), ("region", &cluster.region)];
    let mut labels = BTreeMap::from(place.map(|(key, value)| (key.to_owned(), value.clone())));
    labels.extend(cluster.labels.clone());
    labels
}

/// The first replica of a deployment as a placement unit.
pub(super) fn unit(deployment: &Deployment, place: Option<&Place>) -> Unit {
    let spec = &deployment.spec;
    // A pending instance queues like any other, but once it is placed it is never preempted.
    let is_fixed = deployment.instance_id.is_some() && place.is_some();
    Unit {
        id: ReplicaId { deployment: deployment.id, number: 0 }.into(),
        organization: deployment.organization_id,
        priority: if is_fixed { MAX_PRIORITY + 1 } else { deployment.priority },
        since: deployment.created_at,
        request: spec.resources.clone(),
        target: deployment.pinned_to.map_or(Target::Any, Target::Cluster),
        selector: spec.node_selector.clone(),
        is_spread: spec.anti_affinity,
        is_container: deployment.takes_machine(),
        run_for: spec.run_for.map(|seconds| Duration::from_secs(seconds.into())),
        ends_at: None,
    }
}

fn replica_state(replica: &Replica) -> ReplicaState {
    match &replica.place {
        Some(place) if replica.status.is_placed() => ReplicaState::Placed(place.clone()),
        Some(place) => ReplicaState::Stopping(place.clone()),
        None if replica.status.is_pending() => ReplicaState::Waiting,
        None => ReplicaState::Ended,
    }
}
