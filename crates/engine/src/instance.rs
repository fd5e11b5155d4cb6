//! Workers for instances. Each handles some statuses, in small idempotent steps:
//!
//! - `accepted` reserves capacity on a cluster;
//! - `preparing` creates DNS records and an SSO client;
//! - `provisioning` waits for the agent;
//! - `ready` repairs drift of the external systems;
//! - `deleting` removes everything;
//! - [`EntitlementWorker`] deletes expired trials and instances of denied owners, and enforces entitlements.
//!
//! The first five share one key per instance: they never run concurrently for an instance, and one
//! follows the other without delay.

mod accepted;
pub mod commands;
mod deleting;
mod dns_records;
mod general;
mod preparing;
mod program;
mod provisioning;
mod ready;
mod sso_client;

use std::sync::Arc;
use std::time::Duration;

use base::entropy;
use model::cluster::Cluster;
use model::deployment::Deployment;
use model::instance::{Instance, Reason, Status};
use model::kind::Kind;
use model::work::Requeue;
use model::{InstanceId, Time};
use store::{Db, Scope};

use self::sso_client::StepError;
use crate::locked::{Locked, existing};
use crate::rules::RulesReader;
use crate::{Error, Reconcile};
use port::{Dns, Encryption, Fault, Sso};

pub use general::EntitlementWorker;
pub use sso_client::credentials;
pub(crate) use sso_client::purpose as sso_purpose;

/// Maximum number of steps in one reconciliation.
const MAX_STEPS: usize = 8;
/// How often to check for changes that send no wake-up.
const POLL: Duration = Duration::from_secs(5);

/// The external systems that instances need.
#[derive(Clone)]
pub struct ExternalSystems {
    /// DNS, if configured.
    pub dns: Option<Arc<dyn Dns>>,
    /// SSO clients at an OpenID provider, if configured.
    pub sso: Option<Arc<dyn Sso>>,
    /// Encrypts persisted secrets.
    pub seal: Arc<dyn Encryption>,
    /// Base domain of instances; the kind's default if not set.
    pub domain: Option<String>,
    /// Maximum age of an SSO client's secret; unlimited if not set.
    pub rotate_every: Option<Duration>,
}

/// The worker for the lifecycle of instances.
pub struct InstanceWorker {
    db: Db,
    rules: RulesReader,
    external: ExternalSystems,
}

/// Result of a step.
enum Outcome {
    /// The instance changed: take the next step.
    Moved,
    /// Nothing to do until then.
    Wait(Requeue),
}

impl InstanceWorker {
    /// Creates the worker.
    pub fn new(db: Db, rules: RulesReader, external: ExternalSystems) -> Self {
        Self { db, rules, external }
    }

    async fn step(&self, instance: &Instance) -> Result<Outcome, Error> {
        if instance.status.is_deleting() {
            return deleting::step(self, instance).await;
        }
        let catalog = self.rules.catalog();
        let Some(kind) = catalog.kind(&instance.kind) else {
            self.explain(instance, Reason::KindNotFound { kind: instance.kind.clone() }).await?;
            return Ok(Outcome::Wait(Requeue::At(self.soon(Duration::from_mins(1)))));
        };
        match instance.status {
            Status::Accepted => accepted::step(self, kind, instance).await,
            Status::Preparing => preparing::step(self, kind, instance).await,
            Status::Ready | Status::Suspended => ready::step(self, kind, instance).await,
            _ => provisioning::step(self, kind, instance).await,
        }
    }

    /// Locks the instance for the worker of its status; `None` if it changed since it was read.
    async fn lock(&self, instance: &Instance) -> Result<Option<Locked<Instance>>, Error> {
        Locked::lock(&self.db, worker(instance.status), instance).await
    }

    /// Changes the reason of an instance's status.
    async fn explain(&self, instance: &Instance, reason: Reason) -> Result<(), Error> {
        if instance.reason == reason {
            return Ok(());
        }
        let Some(mut held) = self.lock(instance).await? else { return Ok(()) };
        held.explain(reason).await?;
        held.commit().await
    }

    /// Moves an instance to another status, if it has not changed since it was read.
    async fn transition(
        &self,
        instance: &Instance,
        to: Status,
        reason: Reason,
    ) -> Result<Outcome, Error> {
        if let Some(mut held) = self.lock(instance).await? {
            held.transition(to, reason).await?;
            held.commit().await?;
        }
        Ok(Outcome::Moved)
    }

    /// Handles a failed step. If an external system refuses, the instance fails where its lifecycle
    /// allows that; other external faults are recorded as the reason and retried.
    async fn handle_error(&self, instance: &Instance, error: StepError) -> Result<Outcome, Error> {
        let (system, fault) = match error {
            StepError::Internal(error) => return Err(error),
            StepError::External(system, fault) => (system, fault),
        };
        let message = fault.to_string();
        if matches!(fault, Fault::Refused(_)) && instance.status.may_become(Status::Failed) {
            let reason = Reason::BackendRefused { system, message };
            return self.transition(instance, Status::Failed, reason).await;
        }
        self.explain(instance, Reason::BackendUnavailable { system, message }).await?;
        Ok(Outcome::Wait(Requeue::At(self.soon(POLL))))
    }

    /// The deployment that reserves the capacity of an instance.
    async fn deployment_of(&self, instance: &Instance) -> Result<Option<Deployment>, Error> {
        let Some(id) = instance.deployment_id else { return Ok(None) };
        existing(store::deployment::get(&mut self.db.read().await?, Scope::All, id).await)
    }

    /// The cluster of an instance.
    async fn cluster_of(&self, instance: &Instance) -> Result<Option<Cluster>, Error> {
        let Some(id) = instance.cluster_id else { return Ok(None) };
        existing(store::cluster::get(&mut self.db.read().await?, Scope::All, id).await)
    }

    /// `after` from now with ±50 % jitter, to spread the load.
    fn soon(&self, after: Duration) -> Time {
        let noise =
            u32::try_from(entropy::random_u64(self.db.entropy()) % 1000).unwrap_or_default();
        self.db.now() + after / 2 + after * noise / 1000
    }

    fn domain<'a>(&'a self, kind: &'a Kind) -> &'a str {
        kind.base_domain(self.external.domain.as_deref())
    }
}

/// The reason of an instance that exceeded the deadline of its status.
fn overdue(instance: &Instance, last: Reason) -> Reason {
    let after_seconds = instance.status.timeout().map_or(0, |patience| patience.as_secs());
    Reason::DeadlineExceeded { after_seconds, last: Box::new(last) }
}

/// Name of the worker that handles a status.
fn worker(status: Status) -> &'static str {
    match status {
        Status::Accepted => "accepted",
        Status::Preparing => "preparing",
        Status::Ready | Status::Suspended => "ready",
        Status::Deprovision | Status::Deleting => "deleting",
        Status::Provisioning | Status::Resuming | Status::Suspending | Status::Failed => {
            "provisioning"
        }
    }
}

impl Reconcile for InstanceWorker {
    const NAME: &'static str = store::instance::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let id: InstanceId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        for _ in 0..MAX_STEPS {
            let found = store::instance::get(&mut self.db.read().await?, Scope::All, id).await;
            let Some(instance) = existing(found)? else { return Ok(Requeue::OnChange) };
            if let Outcome::Wait(next) = self.step(&instance).await? {
                return Ok(next);
            }
        }
        Ok(Requeue::Now)
    }
}
