//! The workers of instances. Each acts on its statuses, one small repeatable step at a time:
//!
//! - `accepted` finds a cluster with room and has it held;
//! - `preparing` makes what is outside: names, a client at the OpenID provider;
//! - `provisioning` waits for the agent's word;
//! - `ready` keeps what is outside true;
//! - `deleting` takes everything down again;
//! - [`General`] ends trials, ends what belongs to denied owners, and looks after entitlements.
//!
//! The first five share one key per instance, so that no two act on it at once and one step follows
//! the other without waiting.

mod accepted;
pub mod asking;
mod deleting;
mod general;
mod names;
mod preparing;
mod program;
mod provisioning;
mod ready;
mod sign_in;

use std::sync::Arc;
use std::time::Duration;

use base::entropy;
use model::cluster::Cluster;
use model::deployment::Deployment;
use model::instance::{Instance, Reason, Status};
use model::kind::Kind;
use model::work::Next;
use model::{InstanceId, Time};
use store::{Db, Scope};

use self::sign_in::Trouble;
use crate::held::{Held, existing};
use crate::rules::Rules;
use crate::{Error, Reconcile};
use port::{Dns, Fault, Seal, Sso};

pub use general::General;
pub use sign_in::credentials;

/// How many steps one look may take.
const MOST_STEPS: usize = 8;
/// How often what waits for something that nobody announces is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The foreign systems that instances need.
#[derive(Clone)]
pub struct Outside {
    /// Names, if a name server is set.
    pub dns: Option<Arc<dyn Dns>>,
    /// Clients at an OpenID provider, if one is set.
    pub sso: Option<Arc<dyn Sso>>,
    /// Encrypts what is kept.
    pub seal: Arc<dyn Seal>,
    /// Under which domain instances have their names; the kind's own if none is set.
    pub domain: Option<String>,
    /// How old the secret of an instance's client may get; any age if nothing is set.
    pub rotate_every: Option<Duration>,
}

/// The workers that take instances from one status to the next.
pub struct Instances {
    db: Db,
    rules: Rules,
    outside: Outside,
}

/// What a step came to.
enum Outcome {
    /// There may be more to do at once.
    Moved,
    /// Nothing to do until then.
    Wait(Next),
}

impl Instances {
    /// Workers that go by these rules.
    pub fn new(db: Db, rules: Rules, outside: Outside) -> Self {
        Self { db, rules, outside }
    }

    async fn step(&self, seen: &Instance) -> Result<Outcome, Error> {
        if seen.status.is_leaving() {
            return deleting::step(self, seen).await;
        }
        let catalog = self.rules.catalog();
        let Some(kind) = catalog.kind(&seen.kind) else {
            self.explain(seen, Reason::KindNotFound { kind: seen.kind.clone() }).await?;
            return Ok(Outcome::Wait(Next::At(self.soon(Duration::from_mins(1)))));
        };
        match seen.status {
            Status::Accepted => accepted::step(self, kind, seen).await,
            Status::Preparing => preparing::step(self, kind, seen).await,
            Status::Ready | Status::Suspended => ready::step(self, kind, seen).await,
            _ => provisioning::step(self, kind, seen).await,
        }
    }

    /// The instance in a transaction of the worker that acts on its status; none if it moved on meanwhile.
    async fn still(&self, seen: &Instance) -> Result<Option<Held<Instance>>, Error> {
        Held::take(&self.db, worker(seen.status), seen).await
    }

    /// Changes why an instance is in its status.
    async fn explain(&self, seen: &Instance, reason: Reason) -> Result<(), Error> {
        if seen.reason == reason {
            return Ok(());
        }
        let Some(mut held) = self.still(seen).await? else { return Ok(()) };
        held.explain(reason).await?;
        held.commit().await
    }

    /// Moves an instance to another status, if it is still in the one that was seen.
    async fn transition(
        &self,
        seen: &Instance,
        to: Status,
        reason: Reason,
    ) -> Result<Outcome, Error> {
        if let Some(mut held) = self.still(seen).await? {
            held.transition(to, reason).await?;
            held.commit().await?;
        }
        Ok(Outcome::Moved)
    }

    /// Handles a failed step. A refusal of an external system fails the instance if its lifecycle has
    /// that step; other faults of external systems are explained and retried.
    async fn trouble(&self, seen: &Instance, met: Trouble) -> Result<Outcome, Error> {
        let (system, fault) = match met {
            Trouble::Ours(error) => return Err(error),
            Trouble::Outside(system, fault) => (system, fault),
        };
        let message = fault.to_string();
        if matches!(fault, Fault::Refused(_)) && seen.status.may_become(Status::Failed) {
            let reason = Reason::BackendRefused { system, message };
            return self.transition(seen, Status::Failed, reason).await;
        }
        self.explain(seen, Reason::BackendUnavailable { system, message }).await?;
        Ok(Outcome::Wait(Next::At(self.soon(LOOK_AGAIN))))
    }

    /// What holds the capacity of an instance, if there is something.
    async fn deployment_of(&self, seen: &Instance) -> Result<Option<Deployment>, Error> {
        let Some(id) = seen.deployment_id else { return Ok(None) };
        existing(store::deployment::get(&mut self.db.read().await?, Scope::All, id).await)
    }

    /// The cluster of an instance, if it has one that still is.
    async fn cluster_of(&self, seen: &Instance) -> Result<Option<Cluster>, Error> {
        let Some(id) = seen.cluster_id else { return Ok(None) };
        existing(store::cluster::get(&mut self.db.read().await?, Scope::All, id).await)
    }

    /// A little before or after that time from now, so that not all come at once.
    fn soon(&self, after: Duration) -> Time {
        let noise = u32::try_from(entropy::noise(self.db.entropy()) % 1000).unwrap_or_default();
        self.db.now() + after / 2 + after * noise / 1000
    }

    fn domain<'a>(&'a self, kind: &'a Kind) -> &'a str {
        kind.base_domain(self.outside.domain.as_deref())
    }
}

/// Why an instance fails that was too long in its status.
fn overdue(seen: &Instance, last: Reason) -> Reason {
    let after_seconds = seen.status.patience().map_or(0, |patience| patience.as_secs());
    Reason::DeadlineExceeded { after_seconds, last: Box::new(last) }
}

/// Who acts on a status, by the name in the design.
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

impl Reconcile for Instances {
    const NAME: &'static str = store::instance::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: InstanceId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        for _ in 0..MOST_STEPS {
            let found = store::instance::get(&mut self.db.read().await?, Scope::All, id).await;
            let Some(seen) = existing(found)? else { return Ok(Next::Rest) };
            if let Outcome::Wait(next) = self.step(&seen).await? {
                return Ok(next);
            }
        }
        Ok(Next::Again)
    }
}
