//! Calls providers to create, prepare and destroy clusters.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base::entropy;
use model::cluster::{
    self, AGENT_TOKEN, Cluster, Heartbeat, Provider, ProviderOperation, Reason, Settings, Status,
};
use model::event::Actor;
use model::work::Requeue;
use model::{Secret, Time};
use port::{
    Access, CLUSTER_DNS, CLUSTER_ID, Encryption, Fault, Observed, Operation, Outcome, Progress,
    Task,
};
use serde_json::{Map, Value};
use store::agent_token;
use store::operation::{log, secret};

use super::ClusterWorker;
use crate::operation::{self, Operations, POLL};
use crate::{Error, Reconcile as _};

/// How soon to retry when a backend is unavailable.
const RETRY: Duration = Duration::from_secs(15);
/// How often the objects installed on a cluster are checked and repaired.
pub(super) const REPAIR: Duration = Duration::from_mins(10);

/// The configured providers, and what they need to know about this server.
#[derive(Clone)]
pub struct Providers {
    /// Providers by name.
    pub all: Vec<(Provider, Arc<dyn Operation>)>,
    /// Encrypts what is persisted.
    pub seal: Arc<dyn Encryption>,
    /// URL of this server, as reached from clusters.
    pub server: String,
    /// Image of the agent.
    pub image: String,
    /// The name under which this server holds leases.
    pub holder: String,
}

/// The providers, and their running operations.
pub(super) struct Provisioning {
    providers: Providers,
    operations: Operations,
}

impl Provisioning {
    pub(super) fn new(db: store::Db, providers: Providers) -> Self {
        let (seal, holder) = (providers.seal.clone(), providers.holder.clone());
        let operations = Operations::new(db, ClusterWorker::NAME, seal, holder);
        Self { providers, operations }
    }

    fn get(&self, provider: Provider) -> Option<&Arc<dyn Operation>> {
        self.providers.all.iter().find(|(of, _)| *of == provider).map(|(_, found)| found)
    }

    /// The task of a cluster's step; it stays the same while its call runs.
    async fn task(
        &self,
        cluster: &Cluster,
        op: ProviderOperation,
        fence: i64,
    ) -> Result<Result<Arc<Task>, Fault>, Error> {
        let step = format!("{op:?} {} {}", cluster.generation, cluster.status_since);
        if let Some(task) = self.operations.running(cluster.id.into(), &step) {
            return Ok(Ok(task));
        }
        let kept = match self.operations.open(cluster.id.into()).await? {
            Ok(kept) => kept,
            Err(fault) => return Ok(Err(fault)),
        };
        let task = Task {
            organization: cluster.organization_id,
            with: settings(cluster),
            persisted: kept,
            since: cluster.status_since,
            fence,
            ..Task::new(cluster.id, &cluster.name)
        };
        Ok(Ok(self.operations.start(task, &step)))
    }
}

/// The settings that are passed to a provider, as a JSON object.
fn settings(cluster: &Cluster) -> Map<String, Value> {
    let settings = match &cluster.settings {
        Settings::None => Ok(Value::Null),
        Settings::Kubernetes(settings) => serde_json::to_value(settings),
        Settings::Terraform(settings) => serde_json::to_value(settings),
    };
    match settings {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    }
}

impl ClusterWorker {
    /// Has the provider prepare the namespaces of instances, if there are new ones. Returns when to
    /// retry.
    pub(super) async fn admit_instances(&self, cluster: &Cluster) -> Result<Option<Time>, Error> {
        let mut read = self.db.read().await?;
        let wanted = store::instance::namespaces_on(&mut read, cluster.id).await?;
        drop(read);
        let is_done = {
            let admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
            admitted.get(&cluster.id).map_or(wanted.is_empty(), |done| *done == wanted)
        };
        let found = self
            .provisioning
            .as_ref()
            .and_then(|backend| Some((backend, backend.get(cluster.provider)?)));
        let Some((backend, provider)) = found.filter(|_| !is_done) else { return Ok(None) };
        let retry = Some(self.db.now() + POLL);
        let Ok(fence) = backend.operations.hold(cluster.id.into()).await? else { return Ok(retry) };
        let result = match backend.operations.open(cluster.id.into()).await? {
            Ok(persisted) => {
                let task = Task {
                    organization: cluster.organization_id,
                    with: settings(cluster),
                    persisted,
                    since: cluster.status_since,
                    fence,
                    ..Task::new(cluster.id, &cluster.name)
                };
                provider.admit_instances(&task, &wanted).await
            }
            Err(fault) => Err(fault),
        };
        backend.operations.release_now(cluster.id.into()).await?;
        if let Err(fault) = result {
            tracing::warn!(cluster = %cluster.id, %fault, "preparing namespaces of instances failed, retrying");
            return Ok(retry);
        }
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.insert(cluster.id, wanted);
        Ok(None)
    }

    /// Calls the provider and processes the result. Returns when to reconcile again.
    pub(super) async fn ask(
        &self,
        cluster: &Cluster,
        op: ProviderOperation,
        agent: Heartbeat,
    ) -> Result<Requeue, Error> {
        let found = self
            .provisioning
            .as_ref()
            .and_then(|backend| Some((backend, backend.get(cluster.provider)?)));
        let Some((backend, provider)) = found else {
            if cluster.deadline().is_some_and(|end| end <= self.db.now()) {
                return self.fail_overdue(cluster).await;
            }
            let why = Reason::BackendNotConfigured { provider: cluster.provider };
            return self.explain(cluster, why, Duration::from_mins(1)).await;
        };
        let fence = match backend.operations.hold(cluster.id.into()).await? {
            Ok(fence) => fence,
            Err(next) => return Ok(next),
        };
        let next = self.step(backend, provider, cluster, op, agent, fence).await;
        if !matches!(next, Ok(Requeue::At(at)) if at <= self.db.now() + POLL) {
            backend.operations.release_now(cluster.id.into()).await?;
        }
        match next {
            // Another server was faster; the next reconciliation sees what is true now.
            Err(Error::Store(store::Error::Conflict(_))) => Ok(Requeue::Now),
            other => other,
        }
    }

    async fn step(
        &self,
        backend: &Provisioning,
        provider: &Arc<dyn Operation>,
        cluster: &Cluster,
        op: ProviderOperation,
        agent: Heartbeat,
        fence: i64,
    ) -> Result<Requeue, Error> {
        let task = match backend.task(cluster, op, fence).await? {
            Ok(task) => task,
            Err(fault) => return self.on_fault(cluster, op, &fault).await,
        };
        let is_cancelled =
            store::operation::is_cancelled(&mut self.db.read().await?, cluster.id).await?;
        if is_cancelled && cluster.status.is_provisioning() {
            return self.cancel(backend, provider, cluster, &task).await;
        }
        if cluster.deadline().is_some_and(|end| end <= self.db.now()) {
            return self.fail_overdue(cluster).await;
        }
        if op == ProviderOperation::Destroy && has_no_objects(&task, cluster.provider) {
            return self.transition(cluster, Status::Cleanup, Reason::AsExpected).await;
        }
        let answer = match op {
            ProviderOperation::Create => provider.apply(&task).await,
            ProviderOperation::Status => match provider.observe(&task).await {
                // The apply was interrupted.
                Ok(Progress::Done(Observed { outcome: None, .. })) => provider.apply(&task).await,
                other => other
                    .map(|progress| progress.map(|observed| observed.outcome.unwrap_or_default())),
            },
            ProviderOperation::Destroy => {
                provider.destroy(&task).await.map(|progress| progress.map(|()| Outcome::default()))
            }
            ProviderOperation::InstallAgent => match self.access(backend, cluster, &task).await? {
                Ok(access) => provider.prepare(&task, &access).await,
                Err(fault) => Err(fault),
            },
        };
        if let Ok(Progress::Running { reason, .. }) = &answer {
            let message = reason.to_string();
            if cluster.reason != (Reason::Progressing { message: message.clone() }) {
                task.log.append(message);
            }
        }
        if let Err(fault) = backend.operations.persist(&**provider, &task).await? {
            return self.on_fault(cluster, op, &fault).await;
        }
        match answer {
            Ok(Progress::Running { reason, .. }) => {
                let is_alive = matches!(agent, Heartbeat::Alive(_));
                if op == ProviderOperation::InstallAgent && is_alive {
                    // A heartbeat proves that the agent runs, whatever the provider awaits.
                    return self.done(backend, cluster, op, Outcome::default()).await;
                }
                let next = backend.operations.wait(provider, task.id);
                let reason = Reason::Progressing { message: reason.to_string() };
                if op == ProviderOperation::Create {
                    return self.transition(cluster, Status::Provisioning, reason).await;
                }
                self.explain(cluster, reason, POLL).await?;
                Ok(next)
            }
            Ok(Progress::Done(outcome)) => self.done(backend, cluster, op, outcome).await,
            Err(fault) => self.on_fault(cluster, op, &fault).await,
        }
    }

    async fn done(
        &self,
        backend: &Provisioning,
        cluster: &Cluster,
        op: ProviderOperation,
        outcome: Outcome,
    ) -> Result<Requeue, Error> {
        backend.operations.end(cluster.id.into());
        let Some(mut locked) = self.lock(cluster).await? else { return Ok(Requeue::Now) };
        let text = |name: &str| outcome.outputs.get(name)?.as_str().map(str::to_owned);
        let (id, dns) = (text(CLUSTER_ID), text(CLUSTER_DNS));
        if id.is_some() || dns.is_some() {
            let hosting = &mut locked.now.hosting;
            hosting.dns = dns.or(hosting.dns.take());
            store::cluster::set_provisioned(&mut locked.tx, cluster.id, id.as_deref(), hosting)
                .await?;
        }
        let to = match op {
            ProviderOperation::Create => Some((Status::Provisioning, Reason::AsExpected)),
            _ => cluster::status_after(cluster.status, op, cluster.provider),
        };
        if op == ProviderOperation::InstallAgent {
            self.record_repair(cluster);
        }
        let Some((to, reason)) = to else {
            locked.commit().await?;
            return Ok(Requeue::At(self.db.now() + POLL));
        };
        locked.transition(to, reason).await?;
        locked.commit().await?;
        Ok(Requeue::Now)
    }

    /// Cancels the running operation, as a user requested; the cluster fails.
    async fn cancel(
        &self,
        backend: &Provisioning,
        provider: &Arc<dyn Operation>,
        cluster: &Cluster,
        task: &Task,
    ) -> Result<Requeue, Error> {
        let stopped = provider.cancel(task).await;
        if let Err(fault) = backend.operations.persist(&**provider, task).await? {
            tracing::warn!(cluster = %cluster.id, %fault, "provider state not persisted");
        }
        match stopped {
            Ok(true) => {}
            Ok(false) => {
                let next = backend.operations.wait(provider, task.id);
                self.explain(cluster, Reason::Cancelling, POLL).await?;
                return Ok(next);
            }
            Err(fault) => {
                let why = Reason::CancelFailed { message: fault.to_string() };
                return self.explain(cluster, why, RETRY).await;
            }
        }
        self.fail(cluster, Reason::Cancelled).await
    }

    async fn fail_overdue(&self, cluster: &Cluster) -> Result<Requeue, Error> {
        self.fail(cluster, Reason::DeadlineExceeded { last: Box::new(cluster.reason.clone()) })
            .await
    }

    /// Handles a fault of the provider: retries, or fails the cluster.
    async fn on_fault(
        &self,
        cluster: &Cluster,
        op: ProviderOperation,
        fault: &Fault,
    ) -> Result<Requeue, Error> {
        if op == ProviderOperation::Destroy && cluster.is_forced {
            let why = Reason::LeftBehind { message: fault.to_string() };
            return self.transition(cluster, Status::Cleanup, why).await;
        }
        match fault {
            Fault::Refused(why) if cluster.status == Status::Ready => {
                self.record_repair(cluster);
                self.explain(cluster, Reason::RepairFailed { message: why.clone() }, REPAIR).await
            }
            Fault::Refused(why) if op == ProviderOperation::Destroy => {
                let why = Reason::DestroyFailed { message: why.clone() };
                self.explain(cluster, why, Duration::from_mins(1)).await
            }
            Fault::Refused(why) => {
                self.fail(cluster, Reason::BackendRefused { message: why.clone() }).await
            }
            // A ready cluster keeps its status.
            Fault::Unavailable(_) if cluster.status == Status::Ready => {
                tracing::warn!(cluster = %cluster.id, %fault, "cluster provider unavailable");
                Ok(Requeue::At(self.db.now() + RETRY))
            }
            Fault::Unavailable(_) | Fault::Subject { .. } => {
                let why = Reason::BackendUnavailable { message: fault.to_string() };
                self.explain(cluster, why, RETRY).await
            }
        }
    }

    async fn fail(&self, cluster: &Cluster, why: Reason) -> Result<Requeue, Error> {
        if let Some(mut locked) = self.lock(cluster).await? {
            log::append(&mut locked.tx, cluster.id, &[why.to_string()]).await?;
            store::operation::set_cancelled(&mut locked.tx, cluster.id, false).await?;
            locked.transition(Status::Failed, why).await?;
            locked.commit().await?;
        }
        Ok(Requeue::Now)
    }

    async fn transition(
        &self,
        cluster: &Cluster,
        to: Status,
        reason: Reason,
    ) -> Result<Requeue, Error> {
        if let Some(mut locked) = self.lock(cluster).await? {
            locked.transition(to, reason).await?;
            locked.commit().await?;
        }
        Ok(Requeue::Now)
    }

    async fn explain(
        &self,
        cluster: &Cluster,
        why: Reason,
        after: Duration,
    ) -> Result<Requeue, Error> {
        if let Some(mut locked) = self.lock(cluster).await? {
            locked.explain(why).await?;
            locked.commit().await?;
        }
        Ok(Requeue::At(self.db.now() + after))
    }

    /// What the cluster's agent needs to connect; its token is created once and persisted.
    async fn access(
        &self,
        backend: &Provisioning,
        cluster: &Cluster,
        task: &Task,
    ) -> Result<Result<Access, Fault>, Error> {
        let Providers { server, image, seal, .. } = backend.providers.clone();
        if let Some(token) = task.persisted.get(AGENT_TOKEN).cloned() {
            return Ok(Ok(Access { server, token, image }));
        }
        let token = Secret::new(entropy::secret(self.db.entropy()));
        let kept = BTreeMap::from([(AGENT_TOKEN.to_owned(), token.clone())]);
        let sealed = match operation::encrypt_all(&*seal, cluster.id, &kept).await {
            Ok(sealed) => sealed,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        secret::set(&mut tx, cluster.id, task.fence, &sealed).await?;
        agent_token::create(&mut tx, cluster.id, &entropy::hash(token.reveal()), Duration::ZERO)
            .await?;
        tx.commit().await?;
        backend.operations.add_secrets(task.id, kept);
        Ok(Ok(Access { server, token, image }))
    }
}

/// Whether nothing was installed yet: a Kubernetes cluster is only changed with the agent's token.
fn has_no_objects(task: &Task, provider: Provider) -> bool {
    provider == Provider::Kubernetes && !task.persisted.contains_key(AGENT_TOKEN)
}
