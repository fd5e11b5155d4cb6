//! Drift detection.

use std::time::Duration;

use model::environment::{Environment, OnDrift};
use model::event::Actor;
use model::resource::{Reason, Resource, Status};
use model::work::Requeue;
use store::Scope;

use super::ResourceWorker;
use crate::{Error, Reconcile as _};
use port::{Observed, Progress};

/// How soon to retry a failed observation.
const RETRY: Duration = Duration::from_secs(30);

impl ResourceWorker {
    /// Observes a resource whose lease this server holds.
    pub(super) async fn observe(
        &self,
        resource: &Resource,
        env: &Environment,
    ) -> Result<Requeue, Error> {
        let Some(executor) = self.executors.get(resource.node.executor) else {
            return Ok(self.operations.soon(self.executors.observe_every));
        };
        let observed = match self.task_for(resource, env, "observe").await? {
            Ok(task) => executor.observe(&task).await,
            Err(fault) => Err(fault),
        };
        match observed {
            Ok(Progress::Running { .. }) => Ok(self.operations.wait(executor, resource.id.into())),
            Ok(Progress::Done(observed)) => self.record(resource, env, observed).await,
            Err(fault) => {
                tracing::warn!(resource = %resource.id, %fault, "drift detection failed");
                let reason = Reason::ObservationFailed { message: fault.to_string() };
                self.explain(resource, reason, resource.progress).await?;
                self.operations.release_now(resource.id.into()).await?;
                Ok(self.operations.soon(RETRY))
            }
        }
    }

    async fn record(
        &self,
        resource: &Resource,
        env: &Environment,
        observed: Observed,
    ) -> Result<Requeue, Error> {
        let Some((mut tx, mut now)) = self.lock(resource).await? else {
            return Ok(Requeue::Now);
        };
        let (to, reason) = judge(&observed);
        let is_changed = now.drift != observed.drift || now.unexpected != observed.unexpected;
        (now.drift, now.unexpected) = (observed.drift, observed.unexpected);
        // An observation requested meanwhile must begin after the request.
        if now.updated_at == resource.updated_at {
            now.observed_at = Some(tx.now());
        }
        if now.status != to {
            store::transition(&mut tx, &mut now, to, reason).await?;
        } else if is_changed {
            now.reason = reason;
            store::resource::save(&mut tx, &mut now, to.as_str()).await?;
        } else {
            now.reason = reason;
            store::resource::set_observed(&mut tx, &now).await?;
        }
        self.operations.release(&mut tx, now.id.into()).await?;
        tx.commit().await?;
        if to == Status::Drifted && env.on_drift == OnDrift::Repair {
            self.repair(&now).await?;
        }
        Ok(Requeue::Now)
    }

    /// Repairs a drifted resource automatically, as its environment demands.
    async fn repair(&self, resource: &Resource) -> Result<(), Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut env =
            store::environment::lock(&mut tx, Scope::All, resource.environment_id).await?;
        let names = [resource.node.name.clone()];
        match crate::environment::repair(&mut tx, &mut env, Some(&names)).await {
            // Another operation is running; the next observation finds the drift again.
            Err(store::Error::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(tx.commit().await?),
        }
    }
}

fn judge(observed: &Observed) -> (Status, Reason) {
    if !observed.drift.is_empty() {
        let fields = observed.drift.iter().map(|difference| difference.field.clone()).collect();
        return (Status::Drifted, Reason::DriftDetected { fields });
    }
    match observed.unexpected.len() as u64 {
        0 => (Status::Applied, Reason::AsExpected),
        objects => (Status::Applied, Reason::UnexpectedObjects { objects }),
    }
}
