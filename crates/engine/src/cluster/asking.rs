//! Asks who makes a cluster, and takes in what is answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::entropy;
use model::cluster::{self, AGENT_TOKEN, Ask, Cluster, Provider, Status, Voice};
use model::event::Actor;
use model::work::Next;
use model::{ClusterId, Secret};
use store::agent_token;
use store::cluster::secret;

use super::Terraform;
use crate::{Error, Reconcile as _};
use port::{Access, Answer, Fault, Made, Order, Progress, Seal};

/// How soon to ask again for what goes on by itself.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// How soon to ask somebody again who could not answer.
const TRY_AGAIN: Duration = Duration::from_secs(15);
/// How often it is seen to that nobody has changed what was installed.
pub(super) const MEND: Duration = Duration::from_mins(10);

/// Who makes clusters, and what they are told of us.
#[derive(Clone)]
pub struct Providers {
    /// Those who are set up.
    pub all: Vec<(Provider, Arc<dyn port::Provider>)>,
    /// Encrypts what is kept.
    pub seal: Arc<dyn Seal>,
    /// Where this server is reached from clusters.
    pub server: String,
    /// The image that holds the agent.
    pub image: String,
}

impl Providers {
    fn get(&self, provider: Provider) -> Option<&dyn port::Provider> {
        self.all.iter().find(|(of, _)| *of == provider).map(|(_, found)| &**found)
    }
}

impl Terraform {
    /// Asks, and takes in the answer; when to look again.
    pub(super) async fn ask(&self, seen: &Cluster, ask: Ask, agent: Voice) -> Result<Next, Error> {
        if seen.deadline().is_some_and(|end| end <= self.db.now()) {
            let why = format!("It took too long. The last word was: {}", seen.status_reason);
            return self.fail(seen, &why).await;
        }
        let all = self.providers.as_ref();
        let Some((all, provider)) = all.and_then(|all| Some((all, all.get(seen.provider)?))) else {
            let why = cluster::Reason::BackendNotConfigured { provider: seen.provider };
            return self.explain(seen, &why.to_string(), Duration::from_mins(1)).await;
        };
        let order = match order(self, all, seen).await? {
            Ok(order) => order,
            Err(fault) => return self.refused(seen, ask, &fault).await,
        };
        if ask == Ask::Remove && is_untouched(&order, seen.provider) {
            return self.advance(seen, Status::Cleanup, "Nothing was made for it yet.").await;
        }
        let answer = match ask {
            Ask::Create => provider.create(&order).await,
            Ask::Status => provider.status(&order).await,
            Ask::Remove => provider.remove(&order).await,
            Ask::Prepare => match access(self, all, seen, &order).await? {
                Ok(access) => provider.prepare(&order, &access).await,
                Err(fault) => Err(fault),
            },
        };
        // What was made half-way must not be forgotten, however that ended.
        let sealed = match provider.keep(&order).await {
            Ok(keep) => seal_all(&*all.seal, seen.id, &keep).await,
            Err(fault) => Err(fault),
        };
        match sealed {
            Ok(sealed) => self.keep(seen, &sealed).await?,
            Err(fault) => return self.refused(seen, ask, &fault).await,
        }
        match answer {
            Ok(progress) => self.take_in(all, seen, ask, progress, agent).await,
            Err(fault) => self.refused(seen, ask, &fault).await,
        }
    }

    async fn take_in(
        &self,
        all: &Providers,
        seen: &Cluster,
        ask: Ask,
        progress: Progress,
        agent: Voice,
    ) -> Result<Next, Error> {
        let speaks = matches!(agent, Voice::Speaks(_));
        let made = match progress {
            Progress::Done(made) => made,
            // Who speaks is there, whatever else is still waited for.
            Progress::Going(_) if ask == Ask::Prepare && speaks => Made::default(),
            Progress::Going(words) if ask == Ask::Create => {
                return self.advance(seen, Status::Provisioning, &words).await;
            }
            Progress::Going(words) => return self.explain(seen, &words, ASK_AGAIN).await,
        };
        let sealed = match seal_all(&*all.seal, seen.id, &made.keep).await {
            Ok(sealed) => sealed,
            Err(fault) => return self.refused(seen, ask, &fault).await,
        };
        let Some(mut held) = self.still(seen).await? else { return Ok(Next::Again) };
        secret::set(&mut held.tx, seen.id, &sealed).await?;
        if made.foreign_id.is_some() || made.dns.is_some() {
            let hosting = &mut held.now.hosting;
            hosting.dns = made.dns.or(hosting.dns.take());
            let name = made.foreign_id.as_deref();
            store::cluster::set_made(&mut held.tx, seen.id, name, hosting).await?;
        }
        let to = match ask {
            Ask::Create => Some((Status::Provisioning, "It is being made.".to_owned())),
            _ => cluster::done(seen.status, ask, seen.provider),
        };
        if ask == Ask::Prepare {
            self.mended(seen);
        }
        let Some((to, reason)) = to else {
            held.commit().await?;
            return Ok(Next::At(self.db.now() + ASK_AGAIN));
        };
        held.transition(to, reason).await?;
        held.commit().await?;
        Ok(Next::Again)
    }

    async fn keep(&self, seen: &Cluster, sealed: &BTreeMap<String, String>) -> Result<(), Error> {
        if sealed.is_empty() {
            return Ok(());
        }
        let mut tx = self.db.begin(Actor::Worker(Self::NAME)).await?;
        secret::set(&mut tx, seen.id, sealed).await?;
        Ok(tx.commit().await?)
    }

    /// It could not be done: for now, or like this never.
    async fn refused(&self, seen: &Cluster, ask: Ask, fault: &Fault) -> Result<Next, Error> {
        if ask == Ask::Remove && seen.is_forced {
            let why = format!("What is left of it is its owner's to remove: {fault}");
            return self.advance(seen, Status::Cleanup, &why).await;
        }
        match fault {
            Fault::Refused(why) if seen.status == Status::Ready => {
                self.mended(seen);
                let why = format!("It can host, but what was installed can't be mended: {why}");
                self.explain(seen, &why, MEND).await
            }
            Fault::Refused(why) if ask == Ask::Remove => {
                let why = format!(
                    "It can't be taken away: {why}. Mend that, or delete it with force: then what is \
                     left there is yours to remove."
                );
                self.explain(seen, &why, Duration::from_mins(1)).await
            }
            Fault::Refused(why) => self.fail(seen, why).await,
            // It hosts all the same.
            Fault::Unavailable(_) if seen.status == Status::Ready => {
                tracing::warn!(cluster = %seen.id, %fault, "its provider can't be asked");
                Ok(Next::At(self.db.now() + TRY_AGAIN))
            }
            Fault::Unavailable(why) => {
                self.explain(seen, &format!("Waits for its provider: {why}"), TRY_AGAIN).await
            }
        }
    }

    async fn fail(&self, seen: &Cluster, why: &str) -> Result<Next, Error> {
        let why = why.trim_end_matches('.');
        let words = format!("{why}. Fix the cause and retry, or delete the cluster.");
        self.advance(seen, Status::Failed, &words).await
    }

    async fn advance(&self, seen: &Cluster, to: Status, reason: &str) -> Result<Next, Error> {
        if let Some(mut held) = self.still(seen).await? {
            held.transition(to, reason).await?;
            held.commit().await?;
        }
        Ok(Next::Again)
    }

    async fn explain(&self, seen: &Cluster, why: &str, again: Duration) -> Result<Next, Error> {
        if let Some(mut held) = self.still(seen).await? {
            held.explain(why).await?;
            held.commit().await?;
        }
        Ok(Next::At(self.db.now() + again))
    }
}

/// What the provider of a cluster is told.
async fn order(
    worker: &Terraform,
    all: &Providers,
    of: &Cluster,
) -> Result<Result<Order, Fault>, Error> {
    let sealed = secret::all(&mut worker.db.read().await?, of.id).await?;
    let mut secrets = BTreeMap::new();
    for (name, sealed) in sealed {
        match all.seal.open(&secret::purpose(of.id, &name), &sealed).await {
            Ok(secret) => secrets.insert(name, secret),
            Err(fault) => return Ok(Err(fault)),
        };
    }
    Ok(Ok(Order {
        id: of.id,
        name: of.name.clone(),
        cloud_provider: of.cloud_provider.clone(),
        region: of.region.clone(),
        capacity: of.total(),
        settings: of.settings.clone(),
        secrets,
    }))
}

/// What the agent of a cluster is told; its token is made once and kept.
async fn access(
    worker: &Terraform,
    all: &Providers,
    of: &Cluster,
    order: &Order,
) -> Result<Result<Access, Fault>, Error> {
    let (server, image) = (all.server.clone(), all.image.clone());
    if let Some(token) = order.secrets.get(AGENT_TOKEN).cloned() {
        return Ok(Ok(Access { server, token, image }));
    }
    let token = Secret::new(entropy::secret(worker.db.entropy()));
    let keep = BTreeMap::from([(AGENT_TOKEN.to_owned(), token.clone())]);
    let sealed = match seal_all(&*all.seal, of.id, &keep).await {
        Ok(sealed) => sealed,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut tx = worker.db.begin(Actor::Worker(Terraform::NAME)).await?;
    let hash = entropy::hash(token.reveal());
    agent_token::create(&mut tx, of.id, &hash, Duration::ZERO).await?;
    secret::set(&mut tx, of.id, &sealed).await?;
    tx.commit().await?;
    Ok(Ok(Access { server, token, image }))
}

/// Encrypts secrets of a cluster for it.
pub fn seal_all<'a>(
    seal: &'a dyn Seal,
    id: ClusterId,
    secrets: &'a BTreeMap<String, Secret>,
) -> Answer<'a, BTreeMap<String, String>> {
    Box::pin(async move {
        let mut sealed = BTreeMap::new();
        for (name, secret) in secrets {
            let text = seal.seal(&secret::purpose(id, name), secret).await?;
            sealed.insert(name.clone(), text);
        }
        Ok(sealed)
    })
}

/// Was nothing installed on it yet? A Kubernetes is touched with the agent's token at hand only.
fn is_untouched(order: &Order, provider: Provider) -> bool {
    provider == Provider::Kubernetes && !order.secrets.contains_key(AGENT_TOKEN)
}
