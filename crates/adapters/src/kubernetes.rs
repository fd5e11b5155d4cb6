//! Clusters that are a Kubernetes which there is: Paddock installs its agent there.
//!
//! Everything is made by server-side apply under the name `paddock`, labelled with the cluster's id, and
//! taken away again; what Paddock did not make stays. Every cluster has a guard of its own: one that is
//! down must not keep the others from being asked.

mod access;
mod fault;
mod names;
mod parts;
mod prepare;
mod remove;
mod rights;
mod rules;
mod state;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use model::ClusterId;
use model::cluster::{self, Settings};
use port::{Access, Answer, Fault, Made, Order, Progress, Provider};

use crate::guard::{Guard, Options};
use fault::Doing;

/// How long one look at a cluster may take: a few dozen requests.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Reaches every Kubernetes that is a cluster of Paddock.
pub struct Kubernetes {
    options: Options,
    noise: fn() -> u64,
    known: Mutex<HashMap<ClusterId, Known>>,
}

/// What is kept of a cluster between two calls.
#[derive(Clone)]
struct Known {
    guard: Arc<Guard>,
    /// The way to it, and a hash of what that was made from.
    client: Option<(Vec<u8>, Client)>,
}

/// A cluster that can be asked.
pub(crate) struct Reached<'a> {
    client: Client,
    order: &'a Order,
    settings: cluster::Kubernetes,
    /// Does a refused token change by itself?
    is_renewed: bool,
}

impl Kubernetes {
    /// Nothing is asked yet. `noise` gives random numbers, for guards.
    pub fn new(options: Options, noise: fn() -> u64) -> Self {
        Self { options, noise, known: Mutex::default() }
    }

    /// Options that suit it: one call is many requests.
    pub fn options() -> Options {
        Options { timeout: TIMEOUT, ..Options::default() }
    }

    fn guard(&self, order: &Order) -> Arc<Guard> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Known {
            guard: Arc::new(Guard::new(
                format!("The Kubernetes of the cluster {}", order.name),
                self.options.clone(),
                self.noise,
            )),
            client: None,
        };
        known.entry(order.id).or_insert_with(new).guard.clone()
    }

    async fn reach<'a>(&self, order: &'a Order) -> Result<Reached<'a>, Fault> {
        let settings = match &order.settings {
            Settings::Kubernetes(settings) => settings.clone(),
            _ => cluster::Kubernetes::default(),
        };
        let kubeconfig = order.secrets.get(cluster::KUBECONFIG);
        let made_of = access::made_of(kubeconfig, settings.context.as_deref());
        let is_renewed = kubeconfig.is_none();
        if let Some(client) = self.client(order.id, &made_of) {
            return Ok(Reached { client, order, settings, is_renewed });
        }
        let client = access::client(kubeconfig, settings.context.as_deref()).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(&order.id) {
            known.client = Some((made_of, client.clone()));
        }
        Ok(Reached { client, order, settings, is_renewed })
    }

    fn client(&self, id: ClusterId, made_of: &[u8]) -> Option<Client> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, client) = known.get(&id)?.client.as_ref()?;
        (of == made_of).then(|| client.clone())
    }

    fn forget(&self, id: ClusterId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    async fn create_once(&self, order: &Order) -> Result<Progress, Fault> {
        let reached = self.reach(order).await?;
        let made = reached.look().await?;
        reached.check_rights().await?;
        Ok(Progress::Done(made))
    }

    async fn status_once(&self, order: &Order) -> Result<Progress, Fault> {
        Ok(Progress::Done(self.reach(order).await?.look().await?))
    }

    async fn prepare_once(&self, order: &Order, agent: &Access) -> Result<Progress, Fault> {
        self.reach(order).await?.prepare(agent).await
    }

    async fn remove_once(&self, order: &Order) -> Result<Progress, Fault> {
        self.reach(order).await?.remove().await
    }
}

impl Reached<'_> {
    /// What it is: told by the namespace that every Kubernetes has.
    async fn look(&self) -> Result<Made, Fault> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get("kube-system").await;
        let found = found.doing(self, "read the namespace kube-system")?;
        Ok(Made { foreign_id: found.metadata.uid, ..Made::default() })
    }
}

impl Provider for Kubernetes {
    fn create<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        let guard = self.guard(order);
        Box::pin(async move { guard.call(|| self.create_once(order)).await })
    }

    fn status<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        let guard = self.guard(order);
        Box::pin(async move { guard.call(|| self.status_once(order)).await })
    }

    fn prepare<'a>(&'a self, order: &'a Order, agent: &'a Access) -> Answer<'a, Progress> {
        let guard = self.guard(order);
        Box::pin(async move { guard.call(|| self.prepare_once(order, agent)).await })
    }

    fn remove<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        let guard = self.guard(order);
        Box::pin(async move {
            let removed = guard.call(|| self.remove_once(order)).await;
            if matches!(removed, Ok(Progress::Done(_))) {
                self.forget(order.id);
            }
            removed
        })
    }
}
