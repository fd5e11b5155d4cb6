//! The composition root: puts store, workers, API and local agent together, runs them, and takes them
//! apart in order.
//!
//! [`Parts`] is everything that differs between a server of a user and a server of a test: the
//! database, external systems, settings. [`Parts::build`] does the rest, the same for both: it is the
//! one place that registers a worker.

mod link;
mod local_agent;
mod logs;

use std::sync::Arc;
use std::time::Duration;

use agent::Runtime;
use api::{App, Logs, NoLogs};
use base::{Stop, Stopper, stop, task};
use engine::cluster::{Providers, Terraform};
use engine::deployment::Ending;
use engine::environment::Environments;
use engine::executor::{Commands, Deployments, Services};
use engine::finding::{self, Finder};
use engine::housekeeping::Housekeeping;
use engine::instance::{General, Instances, Outside};
use engine::placement::{self, Placement};
use engine::resource::{Executors, Resources};
use engine::rules::Rules;
use engine::scaling::{self, Scaling};
use engine::{Driver, Metrics, Options};
use model::cluster::{Patience, Provider};
use model::template::Executor;
use port::{Probe, Watched};
use store::Db;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use link::InProcess;

/// What a server is made from.
pub struct Parts {
    /// The database.
    pub db: Db,
    /// The name of this server among the replicas on one database: the holder of its leases.
    pub name: String,
    /// Catalog, quotas, denied owners and pools in force.
    pub rules: Rules,
    /// DNS, SSO and encryption.
    pub outside: Outside,
    /// Providers of clusters; none if clusters can't reach this server.
    pub providers: Option<Providers>,
    /// Executors of resources in external systems; Paddock's own are added.
    pub executors: Vec<(Executor, Arc<dyn port::Operation>)>,
    /// What to tell users of an executor that this server does not have.
    pub missing: fn(Executor) -> String,
    /// Carries out `command` resources that are HTTP calls.
    pub calls: Option<Arc<dyn port::Operation>>,
    /// Health checks of environments.
    pub probe: Arc<dyn Probe>,
    /// How often applied resources are observed.
    pub observe_every: Duration,
    /// External systems whose health is shown.
    pub watched: Vec<Arc<dyn Watched>>,
    /// The container runtime of the local agent; none for a server without one.
    pub runtime: Option<Arc<dyn Runtime>>,
    /// How the work queue is driven.
    pub driver: Options,
    /// How placement decides.
    pub placement: placement::Settings,
    /// How long agents may be silent.
    pub patience: Patience,
    /// Settings of the API. Which providers and executors exist is taken from the parts.
    pub api: api::Settings,
}

/// A server that is put together and does nothing yet.
pub struct Server {
    /// The API.
    pub app: App,
    db: Db,
    name: String,
    rules: Rules,
    seal: Arc<dyn port::Seal>,
    driver: Driver,
    placement: Placement,
    finder: Finder,
    runtime: Option<Arc<dyn Runtime>>,
    stopper: Stopper,
    stop: Stop,
}

impl Parts {
    /// Puts the parts together. Nothing runs yet.
    pub fn build(mut self) -> Server {
        let (stopper, stop) = stop::channel();
        let (metrics, finder) = (Metrics::default(), Finder::new(self.db.clone()));
        let placement = Placement::new(self.db.clone(), self.placement.clone(), self.name.clone());
        let executors = self.executors();
        let logs: Arc<dyn Logs> = match &self.runtime {
            Some(runtime) => Arc::new(logs::LocalLogs(runtime.clone())),
            None => Arc::new(NoLogs),
        };
        let parts = api::Parts {
            metrics: &metrics,
            outlook: placement.outlook(),
            logs,
            rules: self.rules.clone(),
            seal: self.outside.seal.clone(),
            foreign: std::mem::take(&mut self.watched),
            finder: finder.clone(),
        };
        let app = App::new(self.db.clone(), self.api_settings(&executors), parts, stop.clone());
        Server {
            app,
            db: self.db.clone(),
            name: self.name.clone(),
            rules: self.rules.clone(),
            seal: self.outside.seal.clone(),
            runtime: self.runtime.clone(),
            driver: self.driver(executors, metrics, &placement),
            placement,
            finder,
            stopper,
            stop,
        }
    }

    /// The executors of resources: Paddock's own, and those in external systems.
    pub fn executors(&self) -> Executors {
        let deployments = || Deployments::new(self.db.clone(), self.api.limits);
        let own: [(Executor, Arc<dyn port::Operation>); 3] = [
            (Executor::Deployment, Arc::new(deployments())),
            (Executor::Service, Arc::new(Services::new(self.db.clone(), self.rules.clone()))),
            (Executor::Command, Arc::new(Commands::new(deployments(), self.calls.clone()))),
        ];
        Executors {
            all: own.into_iter().chain(self.executors.iter().cloned()).collect(),
            seal: self.outside.seal.clone(),
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

    /// The work queue with every worker.
    fn driver(self, executors: Executors, metrics: Metrics, placement: &Placement) -> Driver {
        let Self { db, rules, .. } = self;
        let clusters = Terraform::new(db.clone(), self.patience, placement.outlook());
        let clusters = match self.providers {
            Some(providers) => clusters.with(providers),
            None => clusters,
        };
        Driver::new(db.clone(), self.driver, metrics)
            .with(clusters)
            .with(Ending { db: db.clone() })
            .with(Instances::new(db.clone(), rules.clone(), self.outside))
            .with(General { db: db.clone(), rules: rules.clone() })
            .with(Environments::new(db.clone(), self.probe))
            .with(Resources::new(db.clone(), executors))
            .with(Scaling::new(db.clone(), rules, placement.outlook()))
            .with(Housekeeping { db })
    }
}

impl Server {
    /// Serves the API alone: no worker acts on what is asked for.
    pub fn serve(self, listener: TcpListener) -> Running {
        let mut tasks = vec![self.search()];
        tasks.push(task::spawn("http", api::serve(listener, self.app, self.stop)));
        Running { stopper: self.stopper, tasks }
    }

    /// Runs the workers alone, without API and local agent.
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
        let mut tasks = vec![self.search()];
        if let Some(runtime) = self.runtime.take() {
            let link = InProcess::new(self.db.clone(), Provider::Local, self.seal.clone());
            let stop = self.stop.clone();
            tasks.push(local_agent::start(self.db.clone(), self.name.clone(), link, runtime, stop));
        }
        tasks.push(task::spawn("http", api::serve(listener, self.app.clone(), self.stop.clone())));
        let Running { stopper, tasks: workers } = self.work();
        tasks.extend(workers);
        Running { stopper, tasks }
    }

    fn search(&self) -> JoinHandle<()> {
        task::spawn("search", finding::follow(self.finder.clone(), self.stop.clone()))
    }
}

/// A server that runs. Dropping it signals the shutdown and does not wait for it.
pub struct Running {
    stopper: Stopper,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// Signals the shutdown and waits until requests and reconciliations under way have ended.
    pub async fn stop(self) {
        self.stopper.stop();
        for task in self.tasks {
            let _ = task.await;
        }
    }
}
