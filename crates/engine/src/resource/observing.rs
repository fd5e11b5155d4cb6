//! Looks whether what was made is still as it was made.

use std::time::Duration;

use model::environment::{Environment, OnDrift};
use model::event::Actor;
use model::resource::{Reason, Resource, Status};
use model::work::Next;
use store::Scope;

use super::Resources;
use crate::{Error, Reconcile as _};
use port::{Observed, Progress};

/// How soon to look again at what could not be looked at.
const TRY_AGAIN: Duration = Duration::from_secs(30);

impl Resources {
    /// One look at a resource that this server holds.
    pub(super) async fn observe(&self, one: &Resource, of: &Environment) -> Result<Next, Error> {
        let Some(executor) = self.executors.get(one.node.executor) else {
            return Ok(self.operations.soon(self.executors.observe_every));
        };
        let seen = match self.begun(one, of, "observe").await? {
            Ok(task) => executor.observe(&task).await,
            Err(fault) => Err(fault),
        };
        match seen {
            Ok(Progress::Running { .. }) => Ok(self.operations.wait(executor, one.id.into())),
            Ok(Progress::Done(seen)) => self.take_in(one, of, seen).await,
            Err(fault) => {
                tracing::warn!(resource = %one.id, %fault, "drift detection failed");
                let reason = Reason::ObservationFailed { message: fault.to_string() };
                self.explain(one, reason, one.progress).await?;
                self.operations.let_go(one.id.into()).await?;
                Ok(self.operations.soon(TRY_AGAIN))
            }
        }
    }

    async fn take_in(
        &self,
        one: &Resource,
        of: &Environment,
        seen: Observed,
    ) -> Result<Next, Error> {
        let Some((mut tx, mut now)) = self.still(one).await? else { return Ok(Next::Again) };
        let (to, reason) = judge(&seen);
        let is_news = now.drift != seen.drift || now.unexpected != seen.unexpected;
        (now.drift, now.unexpected) = (seen.drift, seen.unexpected);
        // Who asked for a look meanwhile wants one that began after that.
        if now.updated_at == one.updated_at {
            now.observed_at = Some(tx.now());
        }
        if now.status != to {
            store::transition(&mut tx, &mut now, to, reason).await?;
        } else if is_news {
            now.reason = reason;
            store::resource::save(&mut tx, &mut now, to.as_str()).await?;
        } else {
            now.reason = reason;
            store::resource::set_observed(&mut tx, &now).await?;
        }
        self.operations.release(&mut tx, now.id.into()).await?;
        tx.commit().await?;
        if to == Status::Drifted && of.on_drift == OnDrift::Repair {
            self.repair(&now).await?;
        }
        Ok(Next::Again)
    }

    /// Mends by itself what has drifted, as its environment wants it.
    async fn repair(&self, one: &Resource) -> Result<(), Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut of = store::environment::take(&mut tx, Scope::All, one.environment_id).await?;
        let names = [one.node.name.clone()];
        match crate::environment::repair(&mut tx, &mut of, Some(&names)).await {
            // Something else goes on there; the next look sees it again.
            Err(store::Error::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(tx.commit().await?),
        }
    }
}

fn judge(seen: &Observed) -> (Status, Reason) {
    if !seen.drift.is_empty() {
        let fields = seen.drift.iter().map(|one| one.field.clone()).collect();
        return (Status::Drifted, Reason::DriftDetected { fields });
    }
    match seen.unexpected.len() as u64 {
        0 => (Status::Applied, Reason::AsExpected),
        objects => (Status::Applied, Reason::UnexpectedObjects { objects }),
    }
}
