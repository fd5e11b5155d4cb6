//! Reconciles clusters: drives each from `accepted` to `ready`, monitors its agent, moves its
//! workloads when it is drained, and deletes it.

mod draining;
mod eviction;
mod provisioning;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::cluster::{
    Cluster, Heartbeat, HeartbeatTimeouts, Provider, ProviderOperation, Status, Step,
};
use model::event::Actor;
use model::work::Requeue;
use model::{ClusterId, ReplicaId, Time};
use store::{Db, Read, Scope, lease};

use crate::locked::{Locked, existing};
use crate::placement::PlacementView;
use crate::{Error, Reconcile, local_agent};

pub use provisioning::Providers;
use provisioning::Provisioning;

/// How often to check for the local agent, which sends no wake-up.
const LOCAL_AGENT_POLL: Duration = Duration::from_secs(5);
/// How often to check the progress of a drain.
const DRAIN_POLL: Duration = Duration::from_secs(1);

/// The cluster worker.
pub struct ClusterWorker {
    db: Db,
    timeouts: HeartbeatTimeouts,
    provisioning: Option<Provisioning>,
    placement_view: PlacementView,
    /// When this worker started: it can't have missed heartbeats before that.
    since: Time,
    /// When each cluster was last repaired, and its generation then. Empty after a restart, so that
    /// every cluster is repaired once.
    last_repairs: Mutex<HashMap<ClusterId, (Time, i64)>>,
    /// The namespaces of instances that were prepared on each cluster. Empty after a restart, so that
    /// they are prepared once.
    admitted: Mutex<HashMap<ClusterId, BTreeMap<String, ReplicaId>>>,
}

impl ClusterWorker {
    /// Creates a worker; `timeouts` limits the silence of agents, `placement_view` tells which replicas
    /// can move.
    pub fn new(db: Db, timeouts: HeartbeatTimeouts, placement_view: PlacementView) -> Self {
        let since = db.now();
        Self {
            db,
            timeouts,
            provisioning: None,
            placement_view,
            since,
            last_repairs: Mutex::default(),
            admitted: Mutex::default(),
        }
    }

    /// Configures the providers that create clusters.
    #[must_use]
    pub fn with(self, providers: Providers) -> Self {
        let provisioning = Provisioning::new(self.db.clone(), providers);
        Self { provisioning: Some(provisioning), ..self }
    }

    async fn heartbeat(
        &self,
        read: &mut Read,
        cluster: &Cluster,
        now: Time,
    ) -> Result<Heartbeat, Error> {
        if cluster.provider != Provider::Local {
            let heard_at = cluster.agent.as_ref().map(|agent| agent.at);
            return Ok(self.timeouts.heartbeat(heard_at, self.since, now));
        }
        let is_held = lease::is_held(read, local_agent::LEASE, now).await?;
        Ok(if is_held { Heartbeat::Alive(None) } else { Heartbeat::Never })
    }

    /// Applies the transitions that need no external call. Returns the cluster, the state of its
    /// agent, and the step that remains.
    async fn advance(&self, id: ClusterId) -> Result<Option<(Cluster, Heartbeat, Step)>, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        // Serialises eviction with cluster recovery.
        store::cluster::lock(&mut tx, id).await?;
        let found = store::cluster::get(&mut tx, Scope::All, id).await;
        let Some(mut cluster) = existing(found)? else { return Ok(None) };
        let (before, now) = (cluster.status, tx.now());
        let agent = self.heartbeat(&mut tx, &cluster, now).await?;
        let last = loop {
            match self.timeouts.next_step(&cluster, agent, now) {
                Step::Transition(to, reason) => {
                    store::cluster::transition(&mut tx, &mut cluster, to, reason).await?;
                    if to == Status::Ready {
                        store::operation::set_cancelled(&mut tx, id, false).await?;
                    }
                }
                Step::Delete => {
                    store::cluster::delete(&mut tx, &cluster).await?;
                    tx.commit().await?;
                    return Ok(None);
                }
                last => break last,
            }
        };
        if cluster.status != before {
            tx.commit().await?;
        }
        Ok(Some((cluster, agent, last)))
    }

    /// Locks the cluster; `None` if it changed since it was read.
    async fn lock(&self, cluster: &Cluster) -> Result<Option<Locked<Cluster>>, Error> {
        Locked::lock(&self.db, Self::NAME, cluster).await
    }

    /// Handles a cluster whose status does not change. Returns when to reconcile again.
    async fn maintain(&self, cluster: &Cluster, agent: Heartbeat) -> Result<Option<Time>, Error> {
        if matches!(cluster.status, Status::Ready | Status::Unreachable) {
            self.annotate(cluster).await?;
        }
        if cluster.status != Status::Ready {
            return Ok(None);
        }
        let mut next = None;
        if cluster.draining_at.is_some() && self.drain(cluster).await? {
            next = Some(self.db.now() + DRAIN_POLL);
        }
        if cluster.provider == Provider::Kubernetes {
            if self.needs_repair(cluster) {
                self.ask(cluster, ProviderOperation::InstallAgent, agent).await?;
            }
            next = next.into_iter().chain([self.db.now() + provisioning::REPAIR]).min();
        }
        if cluster.provider.provisions() {
            next = next.into_iter().chain(self.admit_instances(cluster).await?).min();
        }
        Ok(next)
    }

    fn record_repair(&self, cluster: &Cluster) {
        let mut last_repairs = self.last_repairs.lock().unwrap_or_else(PoisonError::into_inner);
        last_repairs.insert(cluster.id, (self.db.now(), cluster.generation));
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster.id);
    }

    fn needs_repair(&self, cluster: &Cluster) -> bool {
        let last_repairs = self.last_repairs.lock().unwrap_or_else(PoisonError::into_inner);
        last_repairs.get(&cluster.id).is_none_or(|(at, generation)| {
            *at + provisioning::REPAIR <= self.db.now() || *generation != cluster.generation
        })
    }
}

impl Reconcile for ClusterWorker {
    const NAME: &'static str = store::cluster::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let id: ClusterId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let Some((cluster, agent, last)) = self.advance(id).await? else {
            self.last_repairs.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            self.admitted.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            return Ok(Requeue::OnChange);
        };
        let next = self.maintain(&cluster, agent).await?;
        let at = match last {
            Step::Call(ask) => return self.ask(&cluster, ask, agent).await,
            Step::Evict => {
                self.evict(&cluster).await?;
                None
            }
            Step::WaitUntil(at) => Some(at),
            Step::AwaitLocalAgent => Some(self.db.now() + LOCAL_AGENT_POLL),
            _ => None,
        };
        Ok(at.into_iter().chain(next).min().map_or(Requeue::OnChange, Requeue::At))
    }
}
