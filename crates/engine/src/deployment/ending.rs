//! Ends deployments whose `run_for` has passed.

use model::DeploymentId;
use model::event::Actor;
use model::work::Requeue;
use store::{Db, deployment};

use crate::{Error, Reconcile};

/// The worker that ends deployments.
pub struct RunForWorker {
    /// The database.
    pub db: Db,
}

impl Reconcile for RunForWorker {
    const NAME: &'static str = deployment::ENDING;

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let id: DeploymentId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let next = match deployment::end_due(&mut tx, id).await {
            Err(store::Error::NotFound { .. }) => return Ok(Requeue::OnChange),
            other => other?,
        };
        tx.commit().await?;
        Ok(next.map_or(Requeue::OnChange, Requeue::At))
    }
}
