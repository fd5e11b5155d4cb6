//! Has providers create, prepare and destroy clusters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::entropy;
use model::Secret;
use model::cluster::{self, AGENT_TOKEN, Ask, Cluster, Provider, Reason, Settings, Status, Voice};
use model::event::Actor;
use model::work::Next;
use port::{
    Access, CLUSTER_DNS, CLUSTER_ID, Fault, Observed, Operation, Outcome, Progress, Seal, Task,
};
use serde_json::{Map, Value};
use store::agent_token;
use store::operation::{log, secret};

use super::Terraform;
use crate::operation::{self, Operations, POLL};
use crate::{Error, Reconcile as _};

/// How soon to ask somebody again who could not answer.
const TRY_AGAIN: Duration = Duration::from_secs(15);
/// How often it is seen to that nobody has changed what was installed.
pub(super) const MEND: Duration = Duration::from_mins(10);

/// Who creates clusters, and what they are told of this server.
#[derive(Clone)]
pub struct Providers {
    /// Those who are set up.
    pub all: Vec<(Provider, Arc<dyn Operation>)>,
    /// Encrypts what is persisted.
    pub seal: Arc<dyn Seal>,
    /// Where this server is reached from clusters.
    pub server: String,
    /// The image that holds the agent.
    pub image: String,
    /// The name under which this server holds leases.
    pub holder: String,
}

/// The providers, and the operations that they carry out.
pub(super) struct Provisioning {
    providers: Providers,
    operations: Operations,
}

impl Provisioning {
    pub(super) fn new(db: store::Db, providers: Providers) -> Self {
        let (seal, holder) = (providers.seal.clone(), providers.holder.clone());
        let operations = Operations::new(db, Terraform::NAME, seal, holder);
        Self { providers, operations }
    }

    fn get(&self, provider: Provider) -> Option<&Arc<dyn Operation>> {
        self.providers.all.iter().find(|(of, _)| *of == provider).map(|(_, found)| found)
    }

    /// The task of a cluster's step, which stays the same while its call is running.
    async fn task(
        &self,
        of: &Cluster,
        ask: Ask,
        fence: i64,
    ) -> Result<Result<Arc<Task>, Fault>, Error> {
        let step = format!("{ask:?} {} {}", of.generation, of.status_since);
        if let Some(task) = self.operations.running(of.id.into(), &step) {
            return Ok(Ok(task));
        }
        let kept = match self.operations.open(of.id.into()).await? {
            Ok(kept) => kept,
            Err(fault) => return Ok(Err(fault)),
        };
        let task = Task {
            organization: of.organization_id,
            with: settings(of),
            kept,
            since: of.status_since,
            fence,
            ..Task::new(of.id, &of.name)
        };
        Ok(Ok(self.operations.start(task, &step)))
    }
}

/// What a provider is told, as an object.
fn settings(of: &Cluster) -> Map<String, Value> {
    let told = match &of.settings {
        Settings::None => Ok(Value::Null),
        Settings::Kubernetes(settings) => serde_json::to_value(settings),
        Settings::Terraform(settings) => serde_json::to_value(settings),
    };
    match told {
        Ok(Value::Object(told)) => told,
        _ => Map::new(),
    }
}

impl Terraform {
    /// Asks, and takes in the answer; when to look again.
    pub(super) async fn ask(&self, seen: &Cluster, ask: Ask, agent: Voice) -> Result<Next, Error> {
        let found = self.provisioning.as_ref().and_then(|all| Some((all, all.get(seen.provider)?)));
        let Some((all, provider)) = found else {
            if seen.deadline().is_some_and(|end| end <= self.db.now()) {
                return self.late(seen).await;
            }
            let why = Reason::BackendNotConfigured { provider: seen.provider };
            return self.explain(seen, why, Duration::from_mins(1)).await;
        };
        let fence = match all.operations.hold(seen.id.into()).await? {
            Ok(fence) => fence,
            Err(next) => return Ok(next),
        };
        let next = self.step(all, provider, seen, ask, agent, fence).await;
        if !matches!(next, Ok(Next::At(at)) if at <= self.db.now() + POLL) {
            all.operations.let_go(seen.id.into()).await?;
        }
        match next {
            // Another server was faster; the next reconciliation sees what is true now.
            Err(Error::Store(store::Error::Conflict(_))) => Ok(Next::Again),
            other => other,
        }
    }

    async fn step(
        &self,
        all: &Provisioning,
        provider: &Arc<dyn Operation>,
        seen: &Cluster,
        ask: Ask,
        agent: Voice,
        fence: i64,
    ) -> Result<Next, Error> {
        let task = match all.task(seen, ask, fence).await? {
            Ok(task) => task,
            Err(fault) => return self.refused(seen, ask, &fault).await,
        };
        let is_cancelled =
            store::operation::is_cancelled(&mut self.db.read().await?, seen.id).await?;
        if is_cancelled && seen.status.is_provisioning() {
            return self.cancel(all, provider, seen, &task).await;
        }
        if seen.deadline().is_some_and(|end| end <= self.db.now()) {
            return self.late(seen).await;
        }
        if ask == Ask::Remove && is_untouched(&task, seen.provider) {
            return self.advance(seen, Status::Cleanup, Reason::AsExpected).await;
        }
        let answer = match ask {
            Ask::Create => provider.apply(&task).await,
            Ask::Status => match provider.observe(&task).await {
                // An apply was interrupted.
                Ok(Progress::Done(Observed { outcome: None, .. })) => provider.apply(&task).await,
                other => other.map(|seen| seen.map(|seen| seen.outcome.unwrap_or_default())),
            },
            Ask::Remove => {
                provider.destroy(&task).await.map(|gone| gone.map(|()| Outcome::default()))
            }
            Ask::Prepare => match self.access(all, seen, &task).await? {
                Ok(access) => provider.prepare(&task, &access).await,
                Err(fault) => Err(fault),
            },
        };
        if let Ok(Progress::Running { reason, .. }) = &answer {
            let message = reason.to_string();
            if seen.reason != (Reason::Progressing { message: message.clone() }) {
                task.log.say(message);
            }
        }
        if let Err(fault) = all.operations.keep(&**provider, &task).await? {
            return self.refused(seen, ask, &fault).await;
        }
        match answer {
            Ok(Progress::Running { reason, .. }) => {
                let speaks = matches!(agent, Voice::Speaks(_));
                if ask == Ask::Prepare && speaks {
                    // An agent that speaks runs, whatever else is waited for.
                    return self.done(all, seen, ask, Outcome::default()).await;
                }
                let next = all.operations.wait(provider, task.id);
                let reason = Reason::Progressing { message: reason.to_string() };
                if ask == Ask::Create {
                    return self.advance(seen, Status::Provisioning, reason).await;
                }
                self.explain(seen, reason, POLL).await?;
                Ok(next)
            }
            Ok(Progress::Done(outcome)) => self.done(all, seen, ask, outcome).await,
            Err(fault) => self.refused(seen, ask, &fault).await,
        }
    }

    async fn done(
        &self,
        all: &Provisioning,
        seen: &Cluster,
        ask: Ask,
        outcome: Outcome,
    ) -> Result<Next, Error> {
        all.operations.end(seen.id.into());
        let Some(mut held) = self.still(seen).await? else { return Ok(Next::Again) };
        let text = |name: &str| outcome.outputs.get(name)?.as_str().map(str::to_owned);
        let (id, dns) = (text(CLUSTER_ID), text(CLUSTER_DNS));
        if id.is_some() || dns.is_some() {
            let hosting = &mut held.now.hosting;
            hosting.dns = dns.or(hosting.dns.take());
            store::cluster::set_made(&mut held.tx, seen.id, id.as_deref(), hosting).await?;
        }
        let to = match ask {
            Ask::Create => Some((Status::Provisioning, Reason::AsExpected)),
            _ => cluster::done(seen.status, ask, seen.provider),
        };
        if ask == Ask::Prepare {
            self.mended(seen);
        }
        let Some((to, reason)) = to else {
            held.commit().await?;
            return Ok(Next::At(self.db.now() + POLL));
        };
        held.transition(to, reason).await?;
        held.commit().await?;
        Ok(Next::Again)
    }

    /// Stops the running operation as a user asked for; the cluster has failed then.
    async fn cancel(
        &self,
        all: &Provisioning,
        provider: &Arc<dyn Operation>,
        seen: &Cluster,
        task: &Task,
    ) -> Result<Next, Error> {
        let stopped = provider.cancel(task).await;
        if let Err(fault) = all.operations.keep(&**provider, task).await? {
            tracing::warn!(cluster = %seen.id, %fault, "provider state not persisted");
        }
        match stopped {
            Ok(true) => {}
            Ok(false) => {
                let next = all.operations.wait(provider, task.id);
                self.explain(seen, Reason::Cancelling, POLL).await?;
                return Ok(next);
            }
            Err(fault) => {
                let why = Reason::CancelFailed { message: fault.to_string() };
                return self.explain(seen, why, TRY_AGAIN).await;
            }
        }
        self.fail(seen, Reason::Cancelled).await
    }

    async fn late(&self, seen: &Cluster) -> Result<Next, Error> {
        self.fail(seen, Reason::DeadlineExceeded { last: Box::new(seen.reason.clone()) }).await
    }

    /// It could not be done: for now, or like this never.
    async fn refused(&self, seen: &Cluster, ask: Ask, fault: &Fault) -> Result<Next, Error> {
        if ask == Ask::Remove && seen.is_forced {
            let why = Reason::LeftBehind { message: fault.to_string() };
            return self.advance(seen, Status::Cleanup, why).await;
        }
        match fault {
            Fault::Refused(why) if seen.status == Status::Ready => {
                self.mended(seen);
                self.explain(seen, Reason::RepairFailed { message: why.clone() }, MEND).await
            }
            Fault::Refused(why) if ask == Ask::Remove => {
                let why = Reason::DestroyFailed { message: why.clone() };
                self.explain(seen, why, Duration::from_mins(1)).await
            }
            Fault::Refused(why) => {
                self.fail(seen, Reason::BackendRefused { message: why.clone() }).await
            }
            // It hosts all the same.
            Fault::Unavailable(_) if seen.status == Status::Ready => {
                tracing::warn!(cluster = %seen.id, %fault, "its provider can't be asked");
                Ok(Next::At(self.db.now() + TRY_AGAIN))
            }
            Fault::Unavailable(_) | Fault::Subject { .. } => {
                let why = Reason::BackendUnavailable { message: fault.to_string() };
                self.explain(seen, why, TRY_AGAIN).await
            }
        }
    }

    async fn fail(&self, seen: &Cluster, why: Reason) -> Result<Next, Error> {
        if let Some(mut held) = self.still(seen).await? {
            log::append(&mut held.tx, seen.id, &[why.to_string()]).await?;
            store::operation::set_cancelled(&mut held.tx, seen.id, false).await?;
            held.transition(Status::Failed, why).await?;
            held.commit().await?;
        }
        Ok(Next::Again)
    }

    async fn advance(&self, seen: &Cluster, to: Status, reason: Reason) -> Result<Next, Error> {
        if let Some(mut held) = self.still(seen).await? {
            held.transition(to, reason).await?;
            held.commit().await?;
        }
        Ok(Next::Again)
    }

    async fn explain(&self, seen: &Cluster, why: Reason, again: Duration) -> Result<Next, Error> {
        if let Some(mut held) = self.still(seen).await? {
            held.explain(why).await?;
            held.commit().await?;
        }
        Ok(Next::At(self.db.now() + again))
    }

    /// What the agent of a cluster is told; its token is made once and persisted.
    async fn access(
        &self,
        all: &Provisioning,
        of: &Cluster,
        task: &Task,
    ) -> Result<Result<Access, Fault>, Error> {
        let Providers { server, image, seal, .. } = all.providers.clone();
        if let Some(token) = task.kept.get(AGENT_TOKEN).cloned() {
            return Ok(Ok(Access { server, token, image }));
        }
        let token = Secret::new(entropy::secret(self.db.entropy()));
        let kept = BTreeMap::from([(AGENT_TOKEN.to_owned(), token.clone())]);
        let sealed = match operation::seal_all(&*seal, of.id, &kept).await {
            Ok(sealed) => sealed,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        secret::set(&mut tx, of.id, task.fence, &sealed).await?;
        agent_token::create(&mut tx, of.id, &entropy::hash(token.reveal()), Duration::ZERO).await?;
        tx.commit().await?;
        all.operations.kept(task.id, kept);
        Ok(Ok(Access { server, token, image }))
    }
}

/// Was nothing installed on it yet? A Kubernetes is touched with the agent's token at hand only.
fn is_untouched(task: &Task, provider: Provider) -> bool {
    provider == Provider::Kubernetes && !task.kept.contains_key(AGENT_TOKEN)
}
