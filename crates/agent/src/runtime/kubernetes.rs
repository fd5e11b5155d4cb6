//! Kubernetes: a replica is a Deployment or a Job; an instance consists of its kind's manifests.
//!
//! Applied objects are first recorded in a Secret named after the replica, so that a restarted
//! agent knows what to compare with and what to remove. State is observed with one watch per kind
//! of object. Deployments live in the agent's namespace. Instances live in the namespaces that
//! their manifests name, which the agent creates: kinds name objects after their instance, and two
//! tenants may choose the same name.

mod body;
mod cache;
mod connection;
mod evaluate;
mod fault;
mod logs;
mod manifest;
mod names;
mod nodes;
mod object;
mod options;
mod pod;
mod pull;
mod quantity;
mod ready;
mod run;
mod start;
mod stop;
mod watch;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::locks::{Locks, lock};
use base::task::Tasks;
use futures_util::future::{BoxFuture, ready};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher::Config;
use model::OrganizationId;
use model::agent::{Observed, ReplicaId};
use model::cluster::NewNode;
use model::deployment::{Pull, Spec};
use model::log::LogsFrom;
use runtime::LogStream;

use super::{ObservedFuture, Runtime};
use crate::{Error, reason};
use cache::Cache;
use connection::Connection;
use object::ObjectRef;
use run::Run;

pub use options::Options;

/// How long to wait for the first lists before starting without them.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// The Kubernetes runtime. Dropping it leaves everything running.
pub struct Kubernetes {
    options: Options,
    connection: Arc<Connection>,
    /// Namespace of the agent and of deployments.
    agent_namespace: String,
    cache: Arc<Cache>,
    /// Replicas started by this process.
    runs: Arc<Mutex<HashMap<ReplicaId, Arc<Run>>>>,
    /// Kinds that are watched.
    watched: Mutex<HashSet<String>>,
    watches: Mutex<Tasks<()>>,
    /// One lock per deployment, held while its objects are created or removed.
    deployments: Locks<()>,
}

impl Kubernetes {
    /// Connects to the API server and starts the watches.
    pub async fn probe(options: Options) -> Result<Kubernetes, Error> {
        let connection = Arc::new(Connection::open(options.kubeconfig.clone()).await?);
        let agent_namespace =
            options.namespace.clone().unwrap_or_else(|| connection.namespace.clone());
        let runtime = Kubernetes {
            options,
            connection,
            agent_namespace,
            cache: Arc::default(),
            runs: Arc::default(),
            watched: Mutex::default(),
            watches: Mutex::default(),
            deployments: Locks::default(),
        };
        runtime.check().await?;
        runtime.watch_all();
        // An agent that reports before the first sync would report no nodes.
        let _ = tokio::time::timeout(SYNC_TIMEOUT, runtime.until_synced()).await;
        Ok(runtime)
    }

    /// API server and namespace, for logs.
    pub fn describe(&self) -> String {
        format!("{}, namespace {}", self.connection.address, self.agent_namespace)
    }

    /// Checks the permissions to watch. Waits for an API server that is down.
    async fn check(&self) -> Result<(), Error> {
        let one = ListParams::default().limit(1);
        let nodes = self.connection.call("list nodes", |client| {
            let (api, one) = (Api::<Node>::all(client), one.clone());
            async move { api.list_metadata(&one).await }
        });
        nodes.await?;
        let pods = self.connection.call("list pods of all namespaces", |client| {
            let (api, one) = (Api::<Pod>::all(client), one.clone());
            async move { api.list_metadata(&one).await }
        });
        pods.await?;
        Ok(())
    }

    fn watch_all(&self) {
        let cache = self.cache.clone();
        let pods = watch::watch(
            self.connection.clone(),
            "pods".into(),
            Api::<Pod>::all,
            Config::default(),
            move |event| cache.apply_pod(event),
        );
        let cache = self.cache.clone();
        let nodes = watch::watch(
            self.connection.clone(),
            "nodes".into(),
            Api::<Node>::all,
            Config::default(),
            move |event| cache.apply_node(event),
        );
        let mut watches = lock(&self.watches);
        watches.spawn("watch pods", pods);
        watches.spawn("watch nodes", nodes);
        drop(watches);
        self.watch(
            &ObjectRef {
                namespace: None,
                ..ObjectRef::new("", "v1", "Namespace", "namespaces", "", "")
            },
            names::HOME_NAMESPACE,
        );
        self.watch(
            &ObjectRef::new("apps", "v1", "Deployment", "deployments", "", ""),
            names::REPLICA,
        );
        self.watch(&ObjectRef::new("batch", "v1", "Job", "jobs", "", ""), names::REPLICA);
    }

    /// Watches objects of a kind that have a label, once.
    fn watch(&self, object: &ObjectRef, label: &str) {
        let kind = object.resource_name();
        if !lock(&self.watched).insert(kind.clone()) {
            return;
        }
        let (cache, resource) = (self.cache.clone(), object.resource());
        let config = Config::default().labels(label);
        let what = kind.clone();
        let api = move |client| Api::all_with(client, &resource);
        let watch = watch::watch(self.connection.clone(), what, api, config, move |event| {
            cache.apply_object(&kind, event);
        });
        lock(&self.watches).spawn("watch", watch);
    }

    fn run(&self, id: ReplicaId) -> Option<Arc<Run>> {
        lock(&self.runs).get(&id).cloned()
    }
}

impl Runtime for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn start<'a>(
        &'a self,
        id: ReplicaId,
        node: &'a str,
        _organization: Option<OrganizationId>,
        spec: &'a Spec,
    ) -> ObservedFuture<'a> {
        // Manifests name their own images: the spec's image belongs to the other runtimes.
        let image = spec.image.as_deref().filter(|_| spec.manifests.is_empty());
        if let Some(image) = image.filter(|image| runtime::is_local(image)) {
            let message =
                "local images are not available on Kubernetes. Use an image from a registry";
            let reason = reason::not_pulled(image, Pull::Other, message.to_owned());
            return Box::pin(ready(Observed::Failed { reason }));
        }
        Box::pin(self.start_replica(id, node, spec))
    }

    fn changed<'a>(&'a self, id: ReplicaId, last: &'a Observed) -> ObservedFuture<'a> {
        Box::pin(self.until_changed(id, last))
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.stop_replica(id))
    }

    /// The usable nodes, with their capacity for Paddock.
    fn nodes(&self) -> Option<Vec<NewNode>> {
        self.cache.read(|state| nodes::report(state, &self.agent_namespace))
    }

    fn checks_readiness(&self) -> bool {
        true
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        let runs = self.runs.clone();
        let is_active = Box::new(move || lock(&runs).contains_key(&id));
        logs::read(self.connection.clone(), self.cache.clone(), id, &from, follow, is_active)
    }
}
