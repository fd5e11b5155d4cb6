//! Reconciles resources: calls executors to plan, apply, observe and destroy them.

mod drift;
mod steps;
mod task;

use std::sync::Arc;
use std::time::Duration;

use model::environment::{self, Environment};
use model::resource::{Resource, Status};
use model::template;
use model::work::Requeue;
use model::{ResourceId, Time};
use store::{Db, Scope};

use crate::operation::Operations;
use crate::{Error, Reconcile};
use port::{Encryption, Operation};

/// The configured executors.
#[derive(Clone)]
pub struct Executors {
    /// Executors by kind.
    pub all: Vec<(template::Executor, Arc<dyn Operation>)>,
    /// Encrypts persisted secrets.
    pub seal: Arc<dyn Encryption>,
    /// The name under which this server holds leases.
    pub server: String,
    /// Interval of drift detection.
    pub observe_every: Duration,
}

impl Executors {
    fn get(&self, of: template::Executor) -> Option<&Arc<dyn Operation>> {
        self.all.iter().find(|(name, _)| *name == of).map(|(_, found)| found)
    }
}

/// The resource worker.
pub struct ResourceWorker {
    db: Db,
    executors: Executors,
    operations: Operations,
}

impl ResourceWorker {
    /// Creates a worker that calls these executors.
    pub fn new(db: Db, executors: Executors) -> Self {
        let (seal, server) = (executors.seal.clone(), executors.server.clone());
        let operations = Operations::new(db.clone(), Self::NAME, seal, server);
        Self { db, executors, operations }
    }

    async fn read(&self, id: ResourceId) -> Result<Option<(Resource, Environment)>, Error> {
        let mut read = self.db.read().await?;
        let resource = match store::resource::get(&mut read, Scope::All, id).await {
            Err(store::Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let env = store::environment::get(&mut read, Scope::All, resource.environment_id).await?;
        Ok(Some((resource, env)))
    }
}

/// When the next drift detection of a resource is due; never while its environment is changing.
fn next_observation(resource: &Resource, env: &Environment, every: Duration) -> Option<Time> {
    let is_idle = matches!(env.status, environment::Status::Deployed | environment::Status::Failed);
    let exists = matches!(resource.status, Status::Applied | Status::Drifted);
    (is_idle && exists).then(|| resource.observed_at.map_or(Time(0), |at| at + every))
}

impl Reconcile for ResourceWorker {
    const NAME: &'static str = store::resource::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let id: ResourceId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let Some((resource, env)) = self.read(id).await? else { return Ok(Requeue::OnChange) };
        let observe_at = next_observation(&resource, &env, self.executors.observe_every);
        match observe_at {
            Some(at) if at > self.db.now() => return Ok(Requeue::At(at)),
            None if !resource.status.is_running() => return Ok(Requeue::OnChange),
            _ => {}
        }
        let fence = match self.operations.hold(id.into()).await? {
            Ok(fence) => fence,
            Err(next) => return Ok(next),
        };
        let resource = Resource { fence, ..resource };
        let next = if observe_at.is_some() {
            self.observe(&resource, &env).await
        } else {
            self.step(&resource, &env).await
        };
        match next {
            // Another server was faster; the next reconciliation reads the new state.
            Err(Error::Store(store::Error::Conflict(_))) => Ok(Requeue::Now),
            other => other,
        }
    }
}
