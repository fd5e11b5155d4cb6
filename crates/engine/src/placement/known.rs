//! What placement knows, and how it learns what is new.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use model::cluster::{Cluster, Status};
use model::deployment::{Deployment, MAX_PRIORITY};
use model::event::Kind;
use model::replica::Replica;
use model::world::{self, Budget, Target, Unit, UnitId, World};
use model::{
    ClusterId, DeploymentId, InstanceId, OrganizationId, Place, ReplicaId, Resources, Time,
};
use store::deployment::{losing, placing};
use store::{Db, Page, Scope, event};

use super::Settings;

const HOUR: Duration = Duration::from_hours(1);
/// How much is read at once.
const BATCH: i64 = 1000;
/// How much is read before something is decided again.
const MOST_BATCHES: usize = 4;

/// Where a replica is, as the world was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Waiting,
    Placed(Place),
    Stopping(Place),
    /// It ended, and holds nothing.
    Ended,
}

/// What of a deployment is needed to speak of it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) organization: OrganizationId,
    pub(super) priority: i64,
    pub(super) pinned_to: Option<ClusterId>,
    pub(super) request: Resources,
    /// Does it never yield once it has its place? Then the world must hear of that again.
    pub(super) stays: bool,
    /// The instance that it belongs to, if it does.
    pub(super) instance: Option<InstanceId>,
    /// Does it only hold room, for which nobody is charged who has it yield?
    pub(super) is_reserved: bool,
    pub(super) replicas: HashMap<u32, Seen>,
}

/// The world, and what is needed to tell people about it.
pub(super) struct Known {
    pub(super) db: Db,
    pub(super) settings: Settings,
    pub(super) world: World,
    pub(super) clusters: HashMap<ClusterId, Cluster>,
    pub(super) asked: HashMap<DeploymentId, Asked>,
    /// Who had others yield in the last hour.
    preemptions: VecDeque<(Time, OrganizationId)>,
    /// Whose budget the world knows.
    budgeted: HashSet<OrganizationId>,
    /// The place in the log up to which everything is known.
    seq: i64,
    /// Must everything be read anew?
    pub(super) is_stale: bool,
}

impl Known {
    pub(super) fn new(db: Db, settings: Settings) -> Self {
        Self {
            db,
            world: World::new(settings.world.clone()),
            settings,
            clusters: HashMap::new(),
            asked: HashMap::new(),
            preemptions: VecDeque::new(),
            budgeted: HashSet::new(),
            seq: 0,
            is_stale: true,
        }
    }

    /// Learns what has changed since the last time.
    pub(super) async fn catch_up(&mut self) -> store::Result<()> {
        self.db.settle_events().await?;
        if self.is_stale {
            self.read_all().await?;
        }
        // Not for ever: who writes all the time must not keep us from deciding.
        for _ in 0..MOST_BATCHES {
            let changes = event::changes(&mut self.db.read().await?, self.seq, BATCH).await?;
            let Some((last, ..)) = changes.last() else { break };
            let last = *last;
            self.learn(&changes).await?;
            self.seq = last;
        }
        Ok(())
    }

    async fn learn(&mut self, changes: &[(i64, String, String)]) -> store::Result<()> {
        let of = |kind: Kind| {
            let own = changes.iter().filter(move |change| change.1 == kind.as_str());
            own.map(|change| change.2.as_str())
        };
        let clusters: BTreeSet<ClusterId> =
            of(Kind::Cluster).filter_map(|id| id.parse().ok()).collect();
        let deployments: BTreeSet<DeploymentId> =
            of(Kind::Deployment).filter_map(|id| id.parse().ok()).collect();
        for id in clusters {
            self.learn_cluster(id).await?;
        }
        self.learn_deployments(deployments.into_iter().collect()).await
    }

    async fn learn_cluster(&mut self, id: ClusterId) -> store::Result<()> {
        let mut read = self.db.read().await?;
        match store::cluster::get(&mut read, Scope::All, id).await {
            Ok(cluster) => {
                let leftovers = losing::leftovers(&mut read, id).await?;
                self.tell_cluster(cluster, &leftovers);
            }
            Err(store::Error::NotFound { .. }) => {
                self.world.remove_cluster(id);
                self.clusters.remove(&id);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) async fn learn_deployments(&mut self, ids: Vec<DeploymentId>) -> store::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let standing = placing::some(&mut self.db.read().await?, &ids).await?;
        let there: HashSet<DeploymentId> = standing.iter().map(|(d, _)| d.id).collect();
        for (deployment, replicas) in &standing {
            self.tell_deployment(deployment, replicas);
        }
        for id in ids.into_iter().filter(|id| !there.contains(id)) {
            let gone = self.asked.remove(&id).map(|asked| asked.replicas).unwrap_or_default();
            for number in gone.into_keys() {
                self.world.gone(ReplicaId { deployment: id, number }.into());
            }
        }
        Ok(())
    }

    async fn read_all(&mut self) -> store::Result<()> {
        let (db, settings) = (self.db.clone(), self.settings.clone());
        let mut new = Self::new(db.clone(), settings);
        let mut read = db.read().await?;
        new.seq = event::last(&mut read).await?;
        for (organization, at) in placing::preemptions(&mut read, db.now() - HOUR).await? {
            new.preemptions.push_back((at, organization));
        }
        let mut page = Page::first(BATCH);
        loop {
            let filter = store::cluster::Filter::default();
            let part = store::cluster::list(&mut read, Scope::All, &filter, &page).await?;
            let Some(last) = part.last() else { break };
            page.after = Some(last.id.to_string());
            for cluster in part {
                let leftovers = losing::leftovers(&mut read, cluster.id).await?;
                new.tell_cluster(cluster, &leftovers);
            }
        }
        let mut page = Page::first(BATCH);
        loop {
            let part = placing::all(&mut read, &page).await?;
            let Some((last, _)) = part.last() else { break };
            page.after = Some(last.id.to_string());
            for (deployment, replicas) in &part {
                new.tell_deployment(deployment, replicas);
            }
        }
        new.is_stale = false;
        *self = new;
        Ok(())
    }

    fn tell_cluster(&mut self, cluster: Cluster, leftovers: &[(String, Resources)]) {
        let nodes = cluster.nodes.iter().map(|node| {
            let mut taken: Resources =
                node.capacity.iter().map(|(kind, c)| (kind.clone(), c.manual)).collect();
            let left = leftovers.iter().filter(|(name, _)| *name == node.name);
            left.for_each(|(_, request)| taken.add(request));
            world::Node {
                name: node.name.clone(),
                capacity: node.capacity.iter().map(|(kind, c)| (kind.clone(), c.total)).collect(),
                taken,
                labels: node.labels.clone(),
            }
        });
        self.world.set_cluster(world::Cluster {
            id: cluster.id,
            owner: cluster.organization_id,
            is_ready: cluster.status == Status::Ready && cluster.draining_at.is_none(),
            labels: labels(&cluster),
            nodes: nodes.collect(),
        });
        self.clusters.insert(cluster.id, cluster);
    }

    fn tell_deployment(&mut self, deployment: &Deployment, replicas: &[Replica]) {
        let known = self.asked.remove(&deployment.id);
        let is_changed = known.as_ref().is_none_or(|asked| asked.priority != deployment.priority);
        let mut before = known.map(|asked| asked.replicas).unwrap_or_default();
        let mut asked = Asked::of(deployment);
        if self.budgeted.insert(asked.organization) {
            self.set_budget(asked.organization);
        }
        for replica in replicas {
            let (id, now) = (replica.id, seen(replica));
            if is_changed || before.get(&id.number) != Some(&now) {
                let unit = Unit { id: id.into(), ..unit(deployment, replica.place.as_ref()) };
                self.tell_replica(&unit, replica, &now);
            }
            before.remove(&id.number);
            asked.replicas.insert(id.number, now);
        }
        for number in before.into_keys() {
            self.world.gone(ReplicaId { deployment: deployment.id, number }.into());
        }
        self.asked.insert(deployment.id, asked);
    }

    fn tell_replica(&mut self, unit: &Unit, replica: &Replica, now: &Seen) {
        let since = replica.placed_at.unwrap_or(Time(0));
        match now {
            Seen::Waiting => self.world.wait(unit),
            Seen::Placed(place) => self.world.placed(unit, place.clone(), since),
            Seen::Stopping(place) => {
                self.world.placed(unit, place.clone(), since);
                self.world.stopping(unit.id, None);
            }
            Seen::Ended => self.world.gone(unit.id),
        }
    }

    /// Remembers what the world takes as done, so that hearing of it is no news.
    pub(super) fn assume(&mut self, id: UnitId, now: Seen) {
        let id = ReplicaId::from(id);
        if let Some(asked) = self.asked.get_mut(&id.deployment).filter(|asked| !asked.stays) {
            asked.replicas.insert(id.number, now);
        }
    }

    /// Forgets where these are: what is read next is news.
    pub(super) async fn look_again(&mut self, ids: Vec<DeploymentId>) -> store::Result<()> {
        for id in &ids {
            if let Some(asked) = self.asked.get_mut(id) {
                asked.replicas.values_mut().for_each(|seen| *seen = Seen::Ended);
            }
        }
        self.learn_deployments(ids).await
    }

    pub(super) fn count_preemption(&mut self, by: UnitId, at: Time) {
        if let Some(asked) = self.asked.get(&ReplicaId::from(by).deployment) {
            self.preemptions.push_back((at, asked.organization));
        }
    }

    /// Lets preemptions count no more that were more than an hour ago.
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

impl Asked {
    fn of(deployment: &Deployment) -> Self {
        Self {
            name: deployment.name.clone(),
            organization: deployment.organization_id,
            priority: deployment.priority,
            pinned_to: deployment.pinned_to,
            request: deployment.spec.resources.clone(),
            stays: deployment.instance_id.is_some(),
            instance: deployment.instance_id,
            is_reserved: deployment.reserved.is_some(),
            replicas: HashMap::new(),
        }
    }
}

/// What is written on a cluster, and where it stands.
fn labels(cluster: &Cluster) -> BTreeMap<String, String> {
    let place = [("cloud_provider", &cluster.cloud_provider), ("region", &cluster.region)];
    let mut labels = BTreeMap::from(place.map(|(key, value)| (key.to_owned(), value.clone())));
    labels.extend(cluster.labels.clone());
    labels
}

/// The first replica of a deployment, which may have its place, as something to be placed.
pub(super) fn unit(deployment: &Deployment, place: Option<&Place>) -> Unit {
    let spec = &deployment.spec;
    // An instance waits for its turn like everybody, but once it has its place it never yields.
    let stays = deployment.instance_id.is_some() && place.is_some();
    Unit {
        id: ReplicaId { deployment: deployment.id, number: 0 }.into(),
        organization: deployment.organization_id,
        priority: if stays { MAX_PRIORITY + 1 } else { deployment.priority },
        since: deployment.created_at,
        request: spec.resources.clone(),
        target: deployment.pinned_to.map_or(Target::Any, Target::Cluster),
        selector: spec.node_selector.clone(),
        is_spread: spec.anti_affinity,
        run_for: spec.run_for.map(|seconds| Duration::from_secs(seconds.into())),
        ends_at: None,
    }
}

fn seen(replica: &Replica) -> Seen {
    match &replica.place {
        Some(place) if replica.status.is_wanted() => Seen::Placed(place.clone()),
        Some(place) => Seen::Stopping(place.clone()),
        None if replica.status.is_waiting() => Seen::Waiting,
        None => Seen::Ended,
    }
}
