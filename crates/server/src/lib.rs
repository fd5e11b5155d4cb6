//! The composition root: assembles store, workers, API and local agent, runs them, and shuts them
//! down in order.
//!
//! [`Parts`] is everything that differs between a production server and a test server: the
//! database, external systems, settings. [`Parts::build`] does the rest, the same for both: the
//! only place that registers workers.

mod images;
mod link;
mod local_agent;
mod logs;

use std::sync::Arc;
use std::time::Duration;

use agent::Runtime;
use api::{App, Logs, NoLogs};
use base::{Stop, Stopper, stop, task};
use engine::cluster::{ClusterWorker, Providers};
use engine::deployment::RunForWorker;
use engine::encryption::RekeyWorker;
use engine::environment::EnvironmentWorker;
use engine::executor::{Commands, Deployments, Instances};
use engine::housekeeping::Housekeeping;
use engine::instance::{EntitlementWorker, ExternalSystems, InstanceWorker};
use engine::placement::{self, Placement};
use engine::quota::RecountWorker;
use engine::resource::{Executors, ResourceWorker};
use engine::rules::RulesReader;
use engine::scaling::{self, PoolWorker};
use engine::search_index::{self, SearchIndex};
use engine::{Driver, Metrics, Options};
use model::Resources;
use model::cluster::{HeartbeatTimeouts, Provider};
use model::template::Executor;
use port::{Monitored, Probe};
use store::Db;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use link::InProcess;

/// Components of a server.
pub struct Parts {
    /// The database.
    pub db: Db,
    /// Name of this server replica, unique on the database: the holder of its leases.
    pub name: String,
    /// Catalog, quotas, denied owners and pools in force.
    pub rules: RulesReader,
    /// DNS, SSO and encryption.
    pub external: ExternalSystems,
    /// Providers of clusters; none if clusters can't reach this server.
    pub providers: Option<Providers>,
    /// Executors of resources in external systems; the built-in ones are added.
    pub executors: Vec<(Executor, Arc<dyn port::Operation>)>,
    /// Message for users of an executor that this server lacks.
    pub missing: fn(Executor) -> String,
    /// Executor of `command` resources that are HTTP calls.
    pub calls: Option<Arc<dyn port::Operation>>,
    /// Health checks of environments.
    pub probe: Arc<dyn Probe>,
    /// How often applied resources are observed.
    pub observe_every: Duration,
    /// External systems whose health is reported.
    pub monitored: Vec<Arc<dyn Monitored>>,
    /// Container runtime of the local agent, if the server has one.
    pub runtime: Option<Arc<dyn Runtime>>,
    /// What the local agent's machine may give to containers; none if it is not counted.
    pub machine: Option<Resources>,
    /// Options of the work queue.
    pub driver: Options,
    /// Settings of placement.
    pub placement: placement::Settings,
    /// Heartbeat timeouts of agents.
    pub heartbeat_timeouts: HeartbeatTimeouts,
    /// Settings of the API, without its providers and executors, which follow from the parts.
    pub api: api::Settings,
}

/// An assembled server that is not started.
pub struct Server {
    /// The API.
    pub app: App,
    db: Db,
    name: String,
    rules: RulesReader,
    seal: Arc<dyn port::Encryption>,
    driver: Driver,
    placement: Placement,
    search_index: SearchIndex,
    runtime: Option<Arc<dyn Runtime>>,
    machine: Option<Resources>,
    stopper: Stopper,
    stop: Stop,
}

impl Parts {
    /// Assembles the server without starting it.
    pub fn build(mut self) -> Server {
        let (stopper, stop) = stop::channel();
        self.db.set_default_quotas(self.api.default_quotas());
        let (metrics, search_index) = (Metrics::default(), SearchIndex::new(self.db.clone()));
        let placement = Placement::new(self.db.clone(), self.placement.clone(), self.name.clone());
        let executors = self.executors();
        let logs: Arc<dyn Logs> = match &self.runtime {
            Some(runtime) => Arc::new(logs::LocalLogs(runtime.clone())),
            None => Arc::new(NoLogs),
        };
        let parts = api::Parts {
            metrics: &metrics,
            placement: placement.view(),
            logs,
            images: images::of(self.runtime.as_ref()),
            rules: self.rules.clone(),
            seal: self.external.seal.clone(),
            monitored: std::mem::take(&mut self.monitored),
            search_index: search_index.clone(),
        };
        let app = App::new(self.db.clone(), self.api_settings(&executors), parts, stop.clone());
        Server {
            app,
            db: self.db.clone(),
            name: self.name.clone(),
            rules: self.rules.clone(),
            seal: self.external.seal.clone(),
            runtime: self.runtime.clone(),
            machine: self.machine.clone(),
            driver: self.driver(executors, metrics, &placement),
            placement,
            search_index,
            stopper,
            stop,
        }
    }

    /// The executors of resources: the built-in ones and those in external systems.
    pub fn executors(&self) -> Executors {
        let deployments =
            || Deployments::new(self.db.clone(), self.api.limits, self.external.seal.clone());
        let built_in: [(Executor, Arc<dyn port::Operation>); 3] = [
            (Executor::Deployment, Arc::new(deployments())),
            (Executor::Service, Arc::new(Instances::new(self.db.clone(), self.rules.clone()))),
            (Executor::Command, Arc::new(Commands::new(deployments(), self.calls.clone()))),
        ];
        Executors {
            all: built_in.into_iter().chain(self.executors.iter().cloned()).collect(),
            seal: self.external.seal.clone(),
            server: self.name.clone(),
            observe_every: self.observe_every,
        }
    }

    fn api_settings(&self, executors: &Executors) -> api::Settings {
        let provided = self.providers.iter().flat_map(|providers| &providers.all);
        let provided = provided.map(|(provider, _)| *provider);
        let has = |of: Executor| executors.all.iter().any(|(name, _)| *name == of);
        let executors =
            Executor::ALL.iter().map(|&of| (of, (!has(of)).then(|| (self.missing)(of))));
        api::Settings {
            providers: [Provider::Local, Provider::Agent].into_iter().chain(provided).collect(),
            executors: executors.collect(),
            ..self.api.clone()
        }
    }

    /// The work queue with all workers.
    fn driver(self, executors: Executors, metrics: Metrics, placement: &Placement) -> Driver {
        let Self { db, rules, .. } = self;
        let rekey = RekeyWorker { db: db.clone(), seal: self.external.seal.clone() };
        let clusters = ClusterWorker::new(db.clone(), self.heartbeat_timeouts, placement.view());
        let clusters = match self.providers {
            Some(providers) => clusters.with(providers),
            None => clusters,
        };
        Driver::new(db.clone(), self.driver, metrics)
            .with(clusters)
            .with(RunForWorker { db: db.clone() })
            .with(InstanceWorker::new(db.clone(), rules.clone(), self.external))
            .with(EntitlementWorker { db: db.clone(), rules: rules.clone() })
            .with(EnvironmentWorker::new(db.clone(), self.probe))
            .with(ResourceWorker::new(db.clone(), executors))
            .with(PoolWorker::new(db.clone(), rules, placement.view()))
            .with(rekey)
            .with(RecountWorker { db: db.clone() })
            .with(Housekeeping { db })
    }
}

impl Server {
    /// Serves only the API: no worker runs.
    pub fn serve(self, listener: TcpListener) -> Running {
        let mut tasks = vec![self.update_search_index()];
        tasks.push(task::spawn("http", api::serve(listener, self.app, self.stop)));
        Running { stopper: self.stopper, tasks }
    }

    /// Runs only the workers, without API and local agent.
    pub fn work(self) -> Running {
        let Self { driver, placement, stop, .. } = self;
        let tasks = vec![
            task::spawn("driver", driver.run(stop.clone())),
            task::spawn("placement", placement.run(stop.clone())),
            task::spawn("pools", scaling::follow(self.db, self.rules, stop)),
        ];
        Running { stopper: self.stopper, tasks }
    }

    /// Runs everything.
    pub fn run(mut self, listener: TcpListener) -> Running {
        let mut tasks = vec![self.update_search_index()];
        if let Some(runtime) = self.runtime.take() {
            let link = InProcess::new(self.db.clone(), Provider::Local, self.seal.clone());
            let local = local_agent::Local { runtime, machine: self.machine.take() };
            let stop = self.stop.clone();
            tasks.push(local_agent::start(self.db.clone(), self.name.clone(), link, local, stop));
        }
        tasks.push(task::spawn("http", api::serve(listener, self.app.clone(), self.stop.clone())));
        let Running { stopper, tasks: workers } = self.work();
        tasks.extend(workers);
        Running { stopper, tasks }
    }

    fn update_search_index(&self) -> JoinHandle<()> {
        task::spawn("search", search_index::follow(self.search_index.clone(), self.stop.clone()))
    }
}

/// A running server. Dropping it signals the shutdown without waiting for it.
pub struct Running {
    stopper: Stopper,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// Signals the shutdown and waits for requests and reconciliations in progress.
    pub async fn stop(self) {
        self.stopper.stop();
        for task in self.tasks {
            let _ = task.await;
        }
    }
}
