//! The cluster worker: takes clusters from asked-for to ready, keeps an ear on their agents, and
//! takes them out again.

use std::time::Duration;

use model::cluster::{Cluster, Patience, Provider, Status, Step, Voice, caveat};
use model::event::Actor;
use model::work::Next;
use model::{ClusterId, DeploymentId, Time};
use store::deployment::losing;
use store::{Db, Read, Scope, Tx, lease};

use crate::{Error, Reconcile, local_agent};

/// How soon to look again for the agent of this machine, which nobody announces.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The worker.
pub struct Terraform {
    db: Db,
    patience: Patience,
    /// Since when it listens: before that, it could not have heard an agent.
    since: Time,
}

impl Terraform {
    /// A worker that is so patient with silent agents.
    pub fn new(db: Db, patience: Patience) -> Self {
        let since = db.now();
        Self { db, patience, since }
    }

    async fn voice(&self, read: &mut Read, cluster: &Cluster, now: Time) -> Result<Voice, Error> {
        if cluster.provider != Provider::Local {
            let heard_at = cluster.agent.as_ref().map(|heard| heard.at);
            return Ok(self.patience.voice(heard_at, self.since, now));
        }
        let speaks = lease::is_held(read, local_agent::LEASE, now).await?;
        Ok(if speaks { Voice::Speaks(None) } else { Voice::Unheard })
    }

    /// Takes steps until there are none; the cluster as it is then, and when to look again.
    async fn walk(&self, id: ClusterId) -> Result<Option<(Cluster, Step)>, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        // Whoever gives up what is on a cluster must not meet its return.
        store::cluster::lock(&mut tx, id).await?;
        let mut cluster = match store::cluster::get(&mut tx, Scope::All, id).await {
            Err(store::Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let (seen, now) = (cluster.status, tx.now());
        let agent = self.voice(&mut tx, &cluster, now).await?;
        let last = loop {
            match self.patience.next_step(&cluster, agent, now) {
                Step::Move(to, reason) => {
                    cluster = store::cluster::set_status(&mut tx, &cluster, to, &reason).await?;
                }
                Step::Delete => {
                    store::cluster::delete(&mut tx, &cluster).await?;
                    tx.commit().await?;
                    return Ok(None);
                }
                last => break last,
            }
        };
        if cluster.status != seen {
            tx.commit().await?;
        }
        Ok(Some((cluster, last)))
    }

    /// Has what is on a cluster say whether it is known, one deployment after the other.
    async fn annotate(&self, cluster: &Cluster) -> Result<(), Error> {
        let is_lost = cluster.status == Status::Unreachable;
        let mut read = self.db.read().await?;
        let ids = if is_lost {
            losing::undoubted(&mut read, cluster.id).await?
        } else {
            losing::doubted(&mut read, cluster.id).await?
        };
        drop(read);
        let text = is_lost.then(|| caveat(cluster.agent.as_ref().map(|heard| heard.at)));
        for id in ids {
            let Some(mut tx) = self.still(cluster).await? else { return Ok(()) };
            losing::doubt(&mut tx, id, cluster.id, text.as_deref()).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    async fn give_up(&self, cluster: &Cluster) -> Result<(), Error> {
        // A foreign agent knows no fences: nobody could say that its instances are gone for sure.
        if cluster.hosting.is_foreign {
            return Ok(());
        }
        let ids: Vec<DeploymentId> =
            losing::movable(&mut self.db.read().await?, cluster.id).await?;
        let reason = format!("Its cluster {} is lost; it waits for another.", cluster.name);
        for id in ids {
            let Some(mut tx) = self.still(cluster).await? else { return Ok(()) };
            losing::give_up(&mut tx, id, cluster.id, &reason).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// A transaction in which the cluster is what it was and stays that; none if it no longer is.
    async fn still(&self, seen: &Cluster) -> Result<Option<Tx>, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        store::cluster::lock(&mut tx, seen.id).await?;
        let now = match store::cluster::get(&mut tx, Scope::All, seen.id).await {
            Err(store::Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let is_same = now.status == seen.status && now.unreachable_at == seen.unreachable_at;
        Ok(is_same.then_some(tx))
    }
}

impl Reconcile for Terraform {
    const NAME: &'static str = store::cluster::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: ClusterId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let Some((cluster, last)) = self.walk(id).await? else { return Ok(Next::Rest) };
        if matches!(cluster.status, Status::Ready | Status::Unreachable) {
            self.annotate(&cluster).await?;
        }
        Ok(match last {
            Step::GiveUp => {
                self.give_up(&cluster).await?;
                Next::Rest
            }
            Step::Until(at) => Next::At(at),
            Step::Await => Next::At(self.db.now() + LOOK_AGAIN),
            _ => Next::Rest,
        })
    }
}
