//! Ends what was asked to run for a while.

use model::DeploymentId;
use model::event::Actor;
use model::work::Next;
use store::{Db, deployment};

use crate::{Error, Reconcile};

/// The worker.
pub struct Ending {
    /// Where.
    pub db: Db,
}

impl Reconcile for Ending {
    const NAME: &'static str = deployment::ENDING;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: DeploymentId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let next = match deployment::end_due(&mut tx, id).await {
            Err(store::Error::NotFound { .. }) => return Ok(Next::Rest),
            other => other?,
        };
        tx.commit().await?;
        Ok(next.map_or(Next::Rest, Next::At))
    }
}
