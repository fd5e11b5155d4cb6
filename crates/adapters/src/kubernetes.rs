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
use model::operation::Subject;
use model::resource::Difference;
use model::{Invalid, cluster};
use port::{
    Access, Answer, CLUSTER_ID, Fault, Files, Observed, Operation, Outcome, Progress, Task,
};
use serde_json::{Map, Value};

use crate::guard::{Guard, Options};
use fault::Doing;

/// How long one look at a cluster may take: a few dozen requests.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Reaches every Kubernetes that is a cluster of Paddock.
pub struct Kubernetes {
    options: Options,
    noise: fn() -> u64,
    known: Mutex<HashMap<Subject, Known>>,
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
    task: &'a Task,
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

    fn guard(&self, task: &Task) -> Arc<Guard> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Known {
            guard: Arc::new(Guard::new(
                format!("The Kubernetes of the cluster {}", task.name),
                self.options.clone(),
                self.noise,
            )),
            client: None,
        };
        known.entry(task.id).or_insert_with(new).guard.clone()
    }

    async fn reach<'a>(&self, task: &'a Task) -> Result<Reached<'a>, Fault> {
        let settings = settings(&task.with).map_err(|why| Fault::Refused(why.to_string()))?;
        let kubeconfig = task.kept.get(cluster::KUBECONFIG);
        let made_of = access::made_of(kubeconfig, settings.context.as_deref());
        let is_renewed = kubeconfig.is_none();
        if let Some(client) = self.client(task.id, &made_of) {
            return Ok(Reached { client, task, settings, is_renewed });
        }
        let client = access::client(kubeconfig, settings.context.as_deref()).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(&task.id) {
            known.client = Some((made_of, client.clone()));
        }
        Ok(Reached { client, task, settings, is_renewed })
    }

    fn client(&self, id: Subject, made_of: &[u8]) -> Option<Client> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, client) = known.get(&id)?.client.as_ref()?;
        (of == made_of).then(|| client.clone())
    }

    fn forget(&self, id: Subject) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    async fn apply_once(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let reached = self.reach(task).await?;
        let found = reached.look().await?;
        reached.check_rights().await?;
        Ok(Progress::Done(found))
    }

    async fn observe_once(&self, task: &Task) -> Result<Progress<Observed>, Fault> {
        let outcome = Some(self.reach(task).await?.look().await?);
        Ok(Progress::Done(Observed { outcome, ..Observed::default() }))
    }
}

fn settings(with: &Map<String, Value>) -> Result<cluster::Kubernetes, Invalid> {
    serde_json::from_value(Value::Object(with.clone()))
        .map_err(|error| Invalid::new("kubernetes", error.to_string()))
}

impl Reached<'_> {
    /// What it is: told by the namespace that every Kubernetes has.
    async fn look(&self) -> Result<Outcome, Fault> {
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

    fn plan<'a>(&'a self, _: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        let guard = self.guard(task);
        Box::pin(async move { guard.call(|| self.apply_once(task)).await })
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        let guard = self.guard(task);
        Box::pin(async move { guard.call(|| self.observe_once(task)).await })
    }

    fn prepare<'a>(&'a self, task: &'a Task, agent: &'a Access) -> Answer<'a, Progress<Outcome>> {
        let guard = self.guard(task);
        let prepare = async || self.reach(task).await?.prepare(agent).await;
        Box::pin(async move { guard.call(prepare).await })
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        let guard = self.guard(task);
        Box::pin(async move {
            let removed = guard.call(async || self.reach(task).await?.remove().await).await;
            if matches!(removed, Ok(Progress::Done(()))) {
                self.forget(task.id);
            }
            removed
        })
    }
}
