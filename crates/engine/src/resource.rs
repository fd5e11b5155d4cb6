//! The worker of resources: has executors make, change, look at and destroy what environments consist of.
//!
//! A step is carried out by one server at a time, which holds the resource for as long as it asks
//! ([`store::resource::hold`]). Nobody ever has to unlock anything: a server that is no more holds
//! nothing after a while, the next one gets a higher fence, and what the first still says is not taken.

mod observing;
mod steps;
mod task;

use std::sync::Arc;
use std::time::Duration;

use model::environment::{self, Environment};
use model::event::Actor;
use model::resource::{Resource, Status};
use model::template;
use model::work::Next;
use model::{ResourceId, Time};
use store::{Db, Scope};

use crate::{Error, Reconcile};
use port::{Executor, Seal};

/// How long a server may be silent before another one takes over its steps.
const LEASE: Duration = Duration::from_secs(20);
/// How soon to ask again for what goes on by itself.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How soon to look again at what another server carries out: as soon as that one wants to, so that
/// nobody keeps it from its work until its lease is over.
const LOOK_AGAIN: Duration = ASK_AGAIN;

/// Who carries out resources.
#[derive(Clone)]
pub struct Executors {
    /// Those who are set up.
    pub all: Vec<(template::Executor, Arc<dyn Executor>)>,
    /// Encrypts what is kept.
    pub seal: Arc<dyn Seal>,
    /// What this server is called.
    pub server: String,
    /// How often what was made is looked at.
    pub observe_every: Duration,
}

impl Executors {
    fn get(&self, of: template::Executor) -> Option<&dyn Executor> {
        self.all.iter().find(|(name, _)| *name == of).map(|(_, found)| &**found)
    }
}

/// The worker.
pub struct Resources {
    db: Db,
    executors: Executors,
}

impl Resources {
    /// A worker that asks these.
    pub fn new(db: Db, executors: Executors) -> Self {
        Self { db, executors }
    }

    async fn look(&self, id: ResourceId) -> Result<Option<(Resource, Environment)>, Error> {
        let mut read = self.db.read().await?;
        let one = match store::resource::get(&mut read, Scope::All, id).await {
            Err(store::Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let of = store::environment::get(&mut read, Scope::All, one.environment_id).await?;
        Ok(Some((one, of)))
    }

    /// Has this server hold the resource; the resource with its fence then, none if another one does.
    async fn hold(&self, seen: &Resource) -> Result<Option<Resource>, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let held = store::resource::hold(&mut tx, seen.id, &self.executors.server, LEASE).await?;
        let Some(fence) = held else { return Ok(None) };
        tx.commit().await?;
        Ok(Some(Resource { fence, ..seen.clone() }))
    }

    async fn let_go(&self, id: ResourceId) -> Result<(), Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        store::resource::let_go(&mut tx, id, &self.executors.server).await?;
        Ok(tx.commit().await?)
    }

    fn soon(&self, after: Duration) -> Next {
        Next::At(self.db.now() + after)
    }
}

/// When a resource that is there is looked at next; never if its environment does not rest.
fn next_look(one: &Resource, of: &Environment, every: Duration) -> Option<Time> {
    let rests = matches!(of.status, environment::Status::Deployed | environment::Status::Failed);
    let is_there = matches!(one.status, Status::Applied | Status::Drifted);
    (rests && is_there).then(|| one.observed_at.map_or(Time(0), |at| at + every))
}

impl Reconcile for Resources {
    const NAME: &'static str = store::resource::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: ResourceId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let Some((seen, of)) = self.look(id).await? else { return Ok(Next::Rest) };
        let look_at = next_look(&seen, &of, self.executors.observe_every);
        match look_at {
            Some(at) if at > self.db.now() => return Ok(Next::At(at)),
            None if !seen.status.is_running() => return Ok(Next::Rest),
            _ => {}
        }
        let Some(held) = self.hold(&seen).await? else { return Ok(self.soon(LOOK_AGAIN)) };
        let next = if look_at.is_some() {
            self.observe(&held, &of).await
        } else {
            self.step(&held, &of).await
        };
        match next {
            // Somebody was faster; what is true now is seen at the next look.
            Err(Error::Store(store::Error::Conflict(_))) => Ok(Next::Again),
            other => other,
        }
    }
}
