//! Kubernetes: a replica is a Deployment or a Job, an instance is what its kind's manifests say.
//!
//! What is applied is recorded first, in a Secret named after the replica: whoever comes next knows what
//! to compare with and what to remove. How things are doing is watched, with one watch for each kind of
//! object. Deployments live in the agent's own namespace. Instances live in the namespaces that their
//! manifests name, which the agent makes: kinds name things after their instance, and two tenants may
//! choose the same name.

mod body;
mod connection;
mod fault;
mod follow;
mod judge;
mod logs;
mod manifest;
mod names;
mod nodes;
mod object;
mod options;
mod pod;
mod quantity;
mod ready;
mod run;
mod seen;
mod start;
mod stop;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::locks::{Locks, lock};
use base::task::Tasks;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher::Config;
use model::agent::{Observed, ReplicaId};
use model::cluster::NewNode;
use model::deployment::Spec;
use model::log::LogsFrom;
use runtime::LogStream;

use super::{Doing, Runtime};
use crate::Error;
use connection::Connection;
use object::Place;
use run::Run;
use seen::World;

pub use options::Options;

/// How long the first lists may take before the agent begins without them.
const LISTED_WITHIN: Duration = Duration::from_secs(30);

/// The runtime. Dropping it leaves everything running.
pub struct Kubernetes {
    options: Options,
    connection: Arc<Connection>,
    /// Where the agent is, and what it runs for deployments.
    home: String,
    world: Arc<World>,
    /// What shall run, as it was started by this process.
    runs: Arc<Mutex<HashMap<ReplicaId, Arc<Run>>>>,
    /// Kinds that are watched.
    watched: Mutex<HashSet<String>>,
    watches: Mutex<Tasks<()>>,
    /// Held while the objects of a deployment are made or removed.
    deployments: Locks<()>,
}

impl Kubernetes {
    /// Finds the apiserver, and watches. The error says what is wrong and what to do.
    pub async fn probe(options: Options) -> Result<Kubernetes, Error> {
        let connection = Arc::new(Connection::open(options.kubeconfig.clone()).await?);
        let home = options.namespace.clone().unwrap_or_else(|| connection.namespace.clone());
        let runtime = Kubernetes {
            options,
            connection,
            home,
            world: Arc::default(),
            runs: Arc::default(),
            watched: Mutex::default(),
            watches: Mutex::default(),
            deployments: Locks::default(),
        };
        runtime.check().await?;
        runtime.watch_all();
        // Who speaks before knows no nodes, and would be taken for one that has none.
        let _ = tokio::time::timeout(LISTED_WITHIN, runtime.once_known()).await;
        Ok(runtime)
    }

    /// Where it is and in which namespace: for people.
    pub fn describe(&self) -> String {
        format!("{}, namespace {}", self.connection.address, self.home)
    }

    /// May we see what has to be watched? An apiserver that is down is waited for.
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
        let world = self.world.clone();
        let pods = follow::follow(
            self.connection.clone(),
            "pods".into(),
            Api::<Pod>::all,
            Config::default(),
            move |event| world.pod(event),
        );
        let world = self.world.clone();
        let nodes = follow::follow(
            self.connection.clone(),
            "nodes".into(),
            Api::<Node>::all,
            Config::default(),
            move |event| world.node(event),
        );
        let mut watches = lock(&self.watches);
        watches.spawn("watch pods", pods);
        watches.spawn("watch nodes", nodes);
        drop(watches);
        self.watch(
            &Place { namespace: None, ..Place::known("", "v1", "Namespace", "namespaces", "", "") },
            names::HOME,
        );
        self.watch(
            &Place::known("apps", "v1", "Deployment", "deployments", "", ""),
            names::REPLICA,
        );
        self.watch(&Place::known("batch", "v1", "Job", "jobs", "", ""), names::REPLICA);
    }

    /// Watches what has that label, of the kind of an object; once.
    fn watch(&self, place: &Place, label: &str) {
        let kind = place.shelf();
        if !lock(&self.watched).insert(kind.clone()) {
            return;
        }
        let (world, resource) = (self.world.clone(), place.resource());
        let config = Config::default().labels(label);
        let what = kind.clone();
        let api = move |client| Api::all_with(client, &resource);
        let watch = follow::follow(self.connection.clone(), what, api, config, move |event| {
            world.object(&kind, event);
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

    fn start<'a>(&'a self, id: ReplicaId, node: &'a str, spec: &'a Spec) -> Doing<'a> {
        Box::pin(self.start_replica(id, node, spec))
    }

    fn changed<'a>(&'a self, id: ReplicaId, seen: &'a Observed) -> Doing<'a> {
        Box::pin(self.until_other(id, seen))
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.stop_replica(id))
    }

    /// Only the nodes that can be used, with what they have for us.
    fn nodes(&self) -> Option<Vec<NewNode>> {
        self.world.with(|known| nodes::report(known, &self.home))
    }

    fn asks_itself(&self) -> bool {
        true
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        let runs = self.runs.clone();
        let goes_on = Box::new(move || lock(&runs).contains_key(&id));
        logs::read(self.connection.clone(), self.world.clone(), id, &from, follow, goes_on)
    }
}
