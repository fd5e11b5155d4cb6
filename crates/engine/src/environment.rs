//! The worker of environments: has resources be made in order, sees whether it all works, and ends what
//! was meant to end.
//!
//! Which steps begin is decided in `model::environment::turn`; executors carry them out
//! ([`crate::resource`]). What users ask is written down by [`create`], [`apply`] and the others, in
//! their own transactions.

mod asking;
mod health;
mod templates;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::environment::{Environment, Reason, Status, turn};
use model::event::Actor;
use model::resource::{self, Resource};
use model::template::Act;
use model::work::Next;
use model::{EnvironmentId, Time};
use store::{Db, Scope, Tx};

use crate::{Error, Reconcile};
use port::Probe;

pub use asking::{
    Change, Drawn, Wish, adopt, apply, cancel, create, destroy, observe, plan_change, plan_end,
    plan_new, repair, retry, set_destroy_at,
};
pub(crate) use asking::{pend, wake_all};
pub use health::status_endpoints;
pub(crate) use templates::{sources, templates};

/// How many steps of an environment run at once.
const AT_ONCE: usize = 8;
/// How long before its planned end users are reminded.
const REMINDERS: [Duration; 2] = [Duration::from_hours(24), Duration::from_hours(1)];

/// The worker.
pub struct Environments {
    db: Db,
    probe: Arc<dyn Probe>,
    /// How often in a row each environment was found not to work.
    misses: Mutex<HashMap<EnvironmentId, u32>>,
}

impl Environments {
    /// A worker that looks with this whether environments work.
    pub fn new(db: Db, probe: Arc<dyn Probe>) -> Self {
        Self { db, probe, misses: Mutex::default() }
    }

    /// Begins what can begin; where the environment goes then.
    async fn move_on(&self, id: EnvironmentId) -> Result<Next, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut now = store::environment::take(&mut tx, Scope::All, id).await?;
        if !matches!(now.status, Status::Deploying | Status::Destroying) {
            return Ok(Next::Again);
        }
        let mut all = store::resource::of(&mut tx, id).await?;
        let turn = turn(&now, &all, AT_ONCE);
        for (i, reason) in turn.waits {
            let progress = all[i].progress;
            store::resource::explain(&mut tx, &mut all[i], reason, progress).await?;
        }
        for i in turn.begin {
            begin(&mut tx, now.status, &mut all[i]).await?;
        }
        let next = if let Some((to, reason)) = turn.outcome {
            now.progress = turn.progress;
            now.is_cancelled = false;
            store::environment::transition(&mut tx, &mut now, to, reason).await?;
            wake_all(&mut tx, &now).await?;
            Next::Again
        } else {
            store::environment::explain(&mut tx, &mut now, turn.reason, turn.progress).await?;
            Next::Rest
        };
        tx.commit().await?;
        Ok(next)
    }

    /// Ends an environment whose time is over, and reminds of that; when to look again.
    async fn mind_the_end(&self, seen: &Environment) -> Result<Option<Time>, Error> {
        let Some(end) = seen.destroy_at else { return Ok(None) };
        let now = self.db.now();
        if end <= now {
            let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
            let mut taken = store::environment::take(&mut tx, Scope::All, seen.id).await?;
            if taken.destroy_at == Some(end) {
                // It comes once: what fails from here on waits for somebody who has it be tried again.
                taken.destroy_at = None;
                destroy(&mut tx, &mut taken, Reason::TtlExpired { expired_at: end }).await?;
                tx.commit().await?;
            }
            return Ok(Some(now));
        }
        let due = |before: &Duration| end - *before <= now;
        let passed = REMINDERS.iter().filter(|before| due(before)).count();
        let passed = i64::try_from(passed).unwrap_or_default();
        if passed > seen.reminders {
            let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
            let mut taken = store::environment::take(&mut tx, Scope::All, seen.id).await?;
            if taken.destroy_at == Some(end) && taken.reminders < passed {
                taken.reminders = passed;
                store::environment::save(&mut tx, &mut taken, "reminder").await?;
                tx.commit().await?;
            }
        }
        let next = REMINDERS.iter().map(|before| end - *before).filter(|at| *at > now).min();
        Ok(Some(next.unwrap_or(end)))
    }

    fn missed(&self, id: EnvironmentId, is_missed: bool) -> u32 {
        let mut misses = self.misses.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_missed {
            misses.remove(&id);
            return 0;
        }
        let count = misses.entry(id).or_default();
        *count += 1;
        *count
    }
}

/// Hands a resource to its worker.
async fn begin(tx: &mut Tx, status: Status, one: &mut Resource) -> Result<(), Error> {
    let is_end = status == Status::Destroying || one.act == Act::Destroy;
    one.progress = 0;
    if is_end {
        one.act = Act::Destroy;
        if one.status != resource::Status::Pending {
            pend(tx, one, resource::Reason::DestructionQueued { after: None }).await?;
        }
        // No server has ever held it: nothing was made.
        if one.fence == 0 {
            return Ok(store::resource::delete(tx, one, resource::Reason::AsExpected).await?);
        }
    }
    let to = if is_end { resource::Status::Destroying } else { resource::Status::Planning };
    Ok(store::resource::transition(tx, one, to, resource::Reason::AsExpected).await?)
}

impl Reconcile for Environments {
    const NAME: &'static str = store::environment::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: EnvironmentId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let found = store::environment::get(&mut self.db.read().await?, Scope::All, id).await;
        let seen = match found {
            Err(store::Error::NotFound { .. }) => return Ok(Next::Rest),
            other => other?,
        };
        if seen.status == Status::Destroyed {
            self.missed(id, false);
            return Ok(Next::Rest);
        }
        let end = match seen.status {
            Status::Destroying => None,
            _ => self.mind_the_end(&seen).await?,
        };
        if end.is_some_and(|at| at <= self.db.now()) {
            return Ok(Next::Again);
        }
        let next = match seen.status {
            Status::Deploying | Status::Destroying => match self.move_on(id).await? {
                Next::Again => return Ok(Next::Again),
                Next::At(at) => Some(at),
                Next::Rest => None,
            },
            _ => self.look_after(&seen).await?,
        };
        Ok(end.into_iter().chain(next).min().map_or(Next::Rest, Next::At))
    }
}
