//! The worker of resources: has executors plan, apply, observe and destroy what environments consist of.

mod observing;
mod steps;
mod task;

use std::sync::Arc;
use std::time::Duration;

use model::environment::{self, Environment};
use model::resource::{Resource, Status};
use model::template;
use model::work::Next;
use model::{ResourceId, Time};
use store::{Db, Scope};

use crate::operation::Operations;
use crate::{Error, Reconcile};
use port::{Operation, Seal};

/// Who carries out resources.
#[derive(Clone)]
pub struct Executors {
    /// Those who are set up.
    pub all: Vec<(template::Executor, Arc<dyn Operation>)>,
    /// Encrypts what is kept.
    pub seal: Arc<dyn Seal>,
    /// What this server is called.
    pub server: String,
    /// How often what was made is looked at.
    pub observe_every: Duration,
}

impl Executors {
    fn get(&self, of: template::Executor) -> Option<&Arc<dyn Operation>> {
        self.all.iter().find(|(name, _)| *name == of).map(|(_, found)| found)
    }
}

/// The worker.
pub struct Resources {
    db: Db,
    executors: Executors,
    operations: Operations,
}

impl Resources {
    /// A worker that asks these.
    pub fn new(db: Db, executors: Executors) -> Self {
        let (seal, server) = (executors.seal.clone(), executors.server.clone());
        let operations = Operations::new(db.clone(), Self::NAME, seal, server);
        Self { db, executors, operations }
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
        let fence = match self.operations.hold(id.into()).await? {
            Ok(fence) => fence,
            Err(next) => return Ok(next),
        };
        let held = Resource { fence, ..seen };
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
