//! The cluster worker: takes clusters from asked-for to ready, and out again.

use std::time::Duration;

use model::ClusterId;
use model::cluster::{Step, next_step};
use model::event::Actor;
use model::work::Next;
use store::{Db, Scope, lease};

use crate::{Error, Reconcile, local_agent};

/// How soon to look again for an agent that has not spoken.
const AGENT_PATIENCE: Duration = Duration::from_secs(5);

/// The worker.
pub struct Terraform {
    /// Where.
    pub db: Db,
}

impl Reconcile for Terraform {
    const NAME: &'static str = store::cluster::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: ClusterId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        let mut cluster = match store::cluster::get(&mut tx, Scope::All, id).await {
            Err(store::Error::NotFound { .. }) => return Ok(Next::Rest),
            other => other?,
        };
        let now = tx.now();
        let agent_speaks = lease::is_held(&mut tx, local_agent::LEASE, now).await?;
        let next = loop {
            match next_step(cluster.status, agent_speaks) {
                Step::Move(to, reason) => {
                    cluster = store::cluster::set_status(&mut tx, &cluster, to, reason).await?;
                }
                Step::Delete => {
                    store::cluster::delete(&mut tx, &cluster).await?;
                    break Next::Rest;
                }
                Step::Await => break Next::At(now + AGENT_PATIENCE),
                Step::Rest => break Next::Rest,
            }
        };
        tx.commit().await?;
        Ok(next)
    }
}
