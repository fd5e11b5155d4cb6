//! Reconciles environments: starts resources in dependency order, checks health, enforces the TTL.
//!
//! `model::environment::schedule` decides which resources start; executors apply them
//! ([`crate::resource`]). [`create`], [`apply`] and the other commands only record requests, in the
//! caller's transaction.

mod commands;
mod health;
mod templates;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::environment::{Environment, Reason, Status, schedule};
use model::event::Actor;
use model::resource::{self, Resource};
use model::template::Act;
use model::work::Requeue;
use model::{EnvironmentId, Time};
use store::{Db, Scope, Tx};

use crate::{Error, Reconcile};
use port::Probe;

pub use commands::{
    Change, NewEnvironmentRequest, PlannedEnvironment, adopt, apply, cancel, create, destroy,
    observe, plan_change, plan_destroy, plan_new, repair, retry, set_destroy_at,
};
pub(crate) use commands::{queue, wake_all};
pub use health::status_endpoints;
pub(crate) use templates::{sources, templates};

/// Maximum number of concurrent resource operations per environment.
const MAX_CONCURRENT: usize = 8;
/// How long before its planned end users are reminded.
const REMINDERS: [Duration; 2] = [Duration::from_hours(24), Duration::from_hours(1)];

/// The environment worker.
pub struct EnvironmentWorker {
    db: Db,
    probe: Arc<dyn Probe>,
    /// Consecutive failed health checks by environment.
    failures: Mutex<HashMap<EnvironmentId, u32>>,
}

impl EnvironmentWorker {
    /// Creates a worker that checks health with `probe`.
    pub fn new(db: Db, probe: Arc<dyn Probe>) -> Self {
        Self { db, probe, failures: Mutex::default() }
    }

    /// Starts the resources that can start, and transitions the environment when all are done.
    async fn advance(&self, id: EnvironmentId) -> Result<Requeue, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut now = store::environment::lock(&mut tx, Scope::All, id).await?;
        if !matches!(now.status, Status::Deploying | Status::Destroying) {
            return Ok(Requeue::Now);
        }
        let mut all = store::resource::list_of_environment(&mut tx, id).await?;
        let plan = schedule(&now, &all, MAX_CONCURRENT);
        for (i, reason) in plan.waiting {
            let progress = all[i].progress;
            store::resource::explain(&mut tx, &mut all[i], reason, progress).await?;
        }
        for i in plan.start {
            begin(&mut tx, now.status, &mut all[i]).await?;
        }
        let next = if let Some((to, reason)) = plan.outcome {
            now.progress = plan.progress;
            now.is_cancelled = false;
            store::environment::transition(&mut tx, &mut now, to, reason).await?;
            wake_all(&mut tx, &now).await?;
            Requeue::Now
        } else {
            store::environment::explain(&mut tx, &mut now, plan.reason, plan.progress).await?;
            Requeue::OnChange
        };
        tx.commit().await?;
        Ok(next)
    }

    /// Destroys an environment whose TTL has expired, and sends reminders before. Returns the next
    /// due time.
    async fn enforce_ttl(&self, environment: &Environment) -> Result<Option<Time>, Error> {
        let Some(end) = environment.destroy_at else { return Ok(None) };
        let now = self.db.now();
        if end <= now {
            let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
            let mut locked = store::environment::lock(&mut tx, Scope::All, environment.id).await?;
            if locked.destroy_at == Some(end) {
                // The TTL fires once: after a failed destruction, a user must retry.
                locked.destroy_at = None;
                destroy(&mut tx, &mut locked, Reason::TtlExpired { expired_at: end }).await?;
                tx.commit().await?;
            }
            return Ok(Some(now));
        }
        let due = |before: &Duration| end - *before <= now;
        let passed = REMINDERS.iter().filter(|before| due(before)).count();
        let passed = i64::try_from(passed).unwrap_or_default();
        if passed > environment.reminders {
            let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
            let mut locked = store::environment::lock(&mut tx, Scope::All, environment.id).await?;
            if locked.destroy_at == Some(end) && locked.reminders < passed {
                locked.reminders = passed;
                store::environment::save(&mut tx, &mut locked, "reminder").await?;
                tx.commit().await?;
            }
        }
        let next = REMINDERS.iter().map(|before| end - *before).filter(|at| *at > now).min();
        Ok(Some(next.unwrap_or(end)))
    }

    fn count_failure(&self, id: EnvironmentId, is_failure: bool) -> u32 {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_failure {
            failures.remove(&id);
            return 0;
        }
        let count = failures.entry(id).or_default();
        *count += 1;
        *count
    }
}

/// Hands a resource to its worker.
async fn begin(tx: &mut Tx, status: Status, resource: &mut Resource) -> Result<(), Error> {
    let is_end = status == Status::Destroying || resource.act == Act::Destroy;
    resource.progress = 0;
    if is_end {
        resource.act = Act::Destroy;
        if resource.status != resource::Status::Pending {
            queue(tx, resource, resource::Reason::DestructionQueued { after: None }).await?;
        }
        // No server has ever held the lease, so nothing was created.
        if resource.fence == 0 {
            return Ok(store::resource::delete(tx, resource, resource::Reason::AsExpected).await?);
        }
    }
    let to = if is_end { resource::Status::Destroying } else { resource::Status::Planning };
    Ok(store::resource::transition(tx, resource, to, resource::Reason::AsExpected).await?)
}

impl Reconcile for EnvironmentWorker {
    const NAME: &'static str = store::environment::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let id: EnvironmentId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let found = store::environment::get(&mut self.db.read().await?, Scope::All, id).await;
        let environment = match found {
            Err(store::Error::NotFound { .. }) => return Ok(Requeue::OnChange),
            other => other?,
        };
        if environment.status == Status::Destroyed {
            self.count_failure(id, false);
            return Ok(Requeue::OnChange);
        }
        let end = match environment.status {
            Status::Destroying => None,
            _ => self.enforce_ttl(&environment).await?,
        };
        if end.is_some_and(|at| at <= self.db.now()) {
            return Ok(Requeue::Now);
        }
        let next = match environment.status {
            Status::Deploying | Status::Destroying => match self.advance(id).await? {
                Requeue::Now => return Ok(Requeue::Now),
                Requeue::At(at) => Some(at),
                Requeue::OnChange => None,
            },
            _ => self.check_health(&environment).await?,
        };
        Ok(end.into_iter().chain(next).min().map_or(Requeue::OnChange, Requeue::At))
    }
}
