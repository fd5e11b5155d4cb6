//! The provider of clusters that are existing Kubernetes clusters: installs Paddock's agent there.
//!
//! All objects are created by server-side apply with the field manager `paddock`, labelled with the
//! cluster's id, and deleted again; objects of others stay. Every cluster has its own guard: one
//! that is down must not block the others.

mod access;
mod admission;
mod connection;
mod fault;
mod fence;
mod names;
mod parts;
mod permissions;
mod prepare;
mod rbac;
mod remove;
mod state;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Resolver;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use model::operation::Subject;
use model::resource::Difference;
use model::{Invalid, ReplicaId, cluster};
use port::{
    Access, CLUSTER_ID, Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task,
};
use serde_json::{Map, Value};

use crate::guard::{Guard, Options};
use fault::Doing;

/// The timeout of one call to a cluster, which sends a few dozen requests.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Calls the API servers of all Kubernetes clusters.
pub struct Kubernetes {
    options: Options,
    noise: fn() -> u64,
    resolver: Resolver,
    cached: Mutex<HashMap<Subject, Cached>>,
}

/// The guard and client of a cluster, reused between calls.
#[derive(Clone)]
struct Cached {
    guard: Arc<Guard>,
    /// The client, and a hash of its configuration.
    client: Option<(Vec<u8>, Client)>,
}

/// A cluster with a client.
pub(crate) struct Target<'a> {
    client: Client,
    task: &'a Task,
    settings: cluster::Kubernetes,
    /// Whether the token is renewed automatically.
    is_renewed: bool,
}

impl Kubernetes {
    /// Connects to nothing yet. `noise` returns random numbers for the guards; `resolver` resolves
    /// the servers of kubeconfigs, which come from users.
    pub fn new(options: Options, noise: fn() -> u64, resolver: Resolver) -> Self {
        Self { options, noise, resolver, cached: Mutex::default() }
    }

    /// Guard options for it: one call sends many requests.
    pub fn options() -> Options {
        Options { timeout: TIMEOUT, ..Options::default() }
    }

    fn guard(&self, task: &Task) -> Arc<Guard> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Cached {
            guard: Arc::new(Guard::new(
                format!("Kubernetes of cluster {}", task.name),
                self.options.clone(),
                self.noise,
            )),
            client: None,
        };
        cached.entry(task.id).or_insert_with(new).guard.clone()
    }

    async fn connect<'a>(&self, task: &'a Task) -> Result<Target<'a>, Fault> {
        let settings = settings(&task.with).map_err(|why| Fault::Refused(why.to_string()))?;
        let kubeconfig = task.persisted.get(cluster::KUBECONFIG);
        let config_hash = access::config_hash(kubeconfig, settings.context.as_deref());
        let is_renewed = kubeconfig.is_none();
        if let Some(client) = self.client(task.id, &config_hash) {
            return Ok(Target { client, task, settings, is_renewed });
        }
        let client =
            access::client(kubeconfig, settings.context.as_deref(), &self.resolver).await?;
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cached.get_mut(&task.id) {
            cached.client = Some((config_hash, client.clone()));
        }
        Ok(Target { client, task, settings, is_renewed })
    }

    fn client(&self, id: Subject, config_hash: &[u8]) -> Option<Client> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let (hash, client) = cached.get(&id)?.client.as_ref()?;
        (hash == config_hash).then(|| client.clone())
    }

    fn evict(&self, id: Subject) {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let target = self.connect(task).await?;
        let found = target.identify().await?;
        target.check_permissions().await?;
        Ok(Progress::Done(found))
    }

    async fn observe_once(&self, task: &Task) -> Result<Progress<Observed>, Fault> {
        let outcome = Some(self.connect(task).await?.identify().await?);
        Ok(Progress::Done(Observed { outcome, ..Observed::default() }))
    }
}

fn settings(with: &Map<String, Value>) -> Result<cluster::Kubernetes, Invalid> {
    serde_json::from_value(Value::Object(with.clone()))
        .map_err(|error| Invalid::new("kubernetes", error.to_string()))
}

impl Target<'_> {
    /// The cluster's identity: the uid of the namespace that every Kubernetes has.
    async fn identify(&self) -> Result<Outcome, Fault> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get("kube-system").await;
        let found = found.doing(self, "read the namespace kube-system")?;
        let id = found.metadata.uid.map(|uid| (CLUSTER_ID.to_owned(), uid.into()));
        Ok(Outcome { outputs: id.into_iter().collect(), link: None })
    }
}

impl Operation for Kubernetes {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        settings(with).map(drop)
    }

    fn plan<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        let guard = self.guard(task);
        Box::pin(async move { guard.call(|| self.apply_once(task)).await })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        let guard = self.guard(task);
        Box::pin(async move { guard.call(|| self.observe_once(task)).await })
    }

    fn prepare<'a>(
        &'a self,
        task: &'a Task,
        agent: &'a Access,
    ) -> PortFuture<'a, Progress<Outcome>> {
        let guard = self.guard(task);
        let prepare = async || self.connect(task).await?.prepare(agent).await;
        Box::pin(async move { guard.call(prepare).await })
    }

    fn admit_instances<'a>(
        &'a self,
        task: &'a Task,
        namespaces: &'a BTreeMap<String, ReplicaId>,
    ) -> PortFuture<'a, ()> {
        let guard = self.guard(task);
        let admit = async || self.connect(task).await?.admit(namespaces).await;
        Box::pin(async move { guard.call(admit).await })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        let guard = self.guard(task);
        Box::pin(async move {
            let removed = guard.call(async || self.connect(task).await?.remove().await).await;
            if matches!(removed, Ok(Progress::Done(()))) {
                self.evict(task.id);
            }
            removed
        })
    }
}
