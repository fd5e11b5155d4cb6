//! The cluster worker: takes clusters from asked-for to ready, keeps an ear on their agents, has what
//! is on them move when they are drained, and takes them out again.

mod draining;
mod losing;
mod provisioning;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::cluster::{Ask, Cluster, Patience, Provider, Status, Step, Voice};
use model::event::Actor;
use model::work::Next;
use model::{ClusterId, Time};
use store::{Db, Read, Scope, lease};

use crate::held::{Held, existing};
use crate::placement::Outlook;
use crate::{Error, Reconcile, local_agent};

pub use provisioning::Providers;
use provisioning::Provisioning;

/// How soon to look again for the agent of this machine, which nobody announces.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How soon to look again at what moves.
const MOVING: Duration = Duration::from_secs(1);

/// The worker.
pub struct Terraform {
    db: Db,
    patience: Patience,
    provisioning: Option<Provisioning>,
    outlook: Outlook,
    /// Since when it listens: before that, it could not have heard an agent.
    since: Time,
    /// When what was installed on a cluster was last looked after, and what its users wanted then
    /// (its generation). After a start that is long ago.
    mended: Mutex<HashMap<ClusterId, (Time, i64)>>,
}

impl Terraform {
    /// A worker that is so patient with silent agents, and asks placement what could move.
    pub fn new(db: Db, patience: Patience, outlook: Outlook) -> Self {
        let since = db.now();
        Self { db, patience, provisioning: None, outlook, since, mended: Mutex::default() }
    }

    /// Has it ask these for clusters that have to be made.
    #[must_use]
    pub fn with(self, providers: Providers) -> Self {
        let provisioning = Provisioning::new(self.db.clone(), providers);
        Self { provisioning: Some(provisioning), ..self }
    }

    async fn voice(&self, read: &mut Read, cluster: &Cluster, now: Time) -> Result<Voice, Error> {
        if cluster.provider != Provider::Local {
            let heard_at = cluster.agent.as_ref().map(|heard| heard.at);
            return Ok(self.patience.voice(heard_at, self.since, now));
        }
        let speaks = lease::is_held(read, local_agent::LEASE, now).await?;
        Ok(if speaks { Voice::Speaks(None) } else { Voice::Unheard })
    }

    /// Takes the steps that need nobody else; the cluster as it is then, what its agent is like, and
    /// the step that is left.
    async fn walk(&self, id: ClusterId) -> Result<Option<(Cluster, Voice, Step)>, Error> {
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        // Whoever gives up what is on a cluster must not meet its return.
        store::cluster::lock(&mut tx, id).await?;
        let found = store::cluster::get(&mut tx, Scope::All, id).await;
        let Some(mut cluster) = existing(found)? else { return Ok(None) };
        let (seen, now) = (cluster.status, tx.now());
        let agent = self.voice(&mut tx, &cluster, now).await?;
        let last = loop {
            match self.patience.next_step(&cluster, agent, now) {
                Step::Move(to, reason) => {
                    store::cluster::transition(&mut tx, &mut cluster, to, reason).await?;
                    if to == Status::Ready {
                        store::operation::set_cancelled(&mut tx, id, false).await?;
                    }
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
        Ok(Some((cluster, agent, last)))
    }

    /// The cluster in a transaction; none if it is no longer what it was.
    async fn still(&self, seen: &Cluster) -> Result<Option<Held<Cluster>>, Error> {
        Held::take(&self.db, Self::NAME, seen).await
    }

    /// What is to be done for a cluster that stays where it is; when to look again.
    async fn look_after(&self, cluster: &Cluster, agent: Voice) -> Result<Option<Time>, Error> {
        if matches!(cluster.status, Status::Ready | Status::Unreachable) {
            self.annotate(cluster).await?;
        }
        if cluster.status != Status::Ready {
            return Ok(None);
        }
        let mut next = None;
        if cluster.draining_at.is_some() && self.drain(cluster).await? {
            next = Some(self.db.now() + MOVING);
        }
        if cluster.provider == Provider::Kubernetes {
            if self.needs_mending(cluster) {
                self.ask(cluster, Ask::Prepare, agent).await?;
            }
            next = next.into_iter().chain([self.db.now() + provisioning::MEND]).min();
        }
        Ok(next)
    }

    fn mended(&self, cluster: &Cluster) {
        let mut mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        mended.insert(cluster.id, (self.db.now(), cluster.generation));
    }

    fn needs_mending(&self, cluster: &Cluster) -> bool {
        let mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        mended.get(&cluster.id).is_none_or(|(at, generation)| {
            *at + provisioning::MEND <= self.db.now() || *generation != cluster.generation
        })
    }
}

impl Reconcile for Terraform {
    const NAME: &'static str = store::cluster::WORKER;

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let id: ClusterId = key.parse().map_err(|_| Error::Key(key.to_owned()))?;
        let Some((cluster, agent, last)) = self.walk(id).await? else {
            self.mended.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            return Ok(Next::Rest);
        };
        let next = self.look_after(&cluster, agent).await?;
        let at = match last {
            Step::Ask(ask) => return self.ask(&cluster, ask, agent).await,
            Step::GiveUp => {
                self.give_up(&cluster).await?;
                None
            }
            Step::Until(at) => Some(at),
            Step::Await => Some(self.db.now() + LOOK_AGAIN),
            _ => None,
        };
        Ok(at.into_iter().chain(next).min().map_or(Next::Rest, Next::At))
    }
}
