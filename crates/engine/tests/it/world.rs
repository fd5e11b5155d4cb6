//! The real workers and a simulated agent on one database, without HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use agent::{Agent, Link, LinkError, Simulated, simulated};
use base::{Clock, SystemClock, task};
use engine::{local_agent, placement};
use model::agent::{Desired, Report};
use model::cluster::{Cluster, Provider};
use model::deployment::{Deployment, NewDeployment, Status};
use model::event::Actor;
use model::{ClusterId, DeploymentId, OrganizationId};
use server::{InProcess, Parts, Running};
use store::deployment::Filter;
use store::{Db, Page, Scope, lease};
use testing::{Database, Engine, FakeSeal, rows};
use tokio::task::JoinHandle;

use crate::fleet::Fleet;
use crate::probe::{depth, until};

/// A database with workers and an agent.
pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) owner: OrganizationId,
    pub(crate) link: Arc<FlakyLink>,
    pub(crate) fleet: Fleet,
    database: Database,
    server: Option<Running>,
    agent: Option<JoinHandle<()>>,
}

impl World {
    /// A world with an organization and without clusters. Nothing is started.
    pub(crate) async fn still(engine: Engine) -> Self {
        Self::still_with(engine, Arc::new(SystemClock)).await
    }

    /// The same with a test clock.
    pub(crate) async fn still_with(engine: Engine, clock: Arc<dyn Clock>) -> Self {
        let database = Database::new(engine, clock).await;
        let db = database.db.clone();
        let owner = rows::tenant(&db, "acme").await.organization_id;
        let fleet = Fleet::new();
        let link = Arc::new(FlakyLink::new(&db, fleet.seal.clone()));
        Self { db, owner, link, fleet, database, server: None, agent: None }
    }

    /// A world with running workers and agent.
    pub(crate) async fn start(engine: Engine, runtime: simulated::Options) -> Self {
        let mut world = Self::still(engine).await;
        world.start_driver();
        world.start_agent(runtime).await;
        world
    }

    pub(crate) fn start_driver(&mut self) {
        self.start_driver_with(placement::Settings::default());
    }

    pub(crate) fn start_driver_with(&mut self, settings: placement::Settings) {
        let parts = Parts { placement: settings, ..self.fleet.parts(&self.db, "test") };
        self.server = Some(parts.build().work());
    }

    /// Starts an agent with a new runtime; a running agent is aborted, as by a crash.
    pub(crate) async fn start_agent(&mut self, runtime: simulated::Options) {
        self.kill_agent().await;
        let mut tx = self.db.begin(Actor::Agent).await.unwrap();
        let life = Duration::from_hours(1);
        lease::acquire(&mut tx, local_agent::LEASE, "test", life)
            .await
            .unwrap()
            .expect("the lease is free");
        tx.commit().await.unwrap();
        let runtime = Arc::new(Simulated::new(runtime));
        self.agent = Some(task::spawn("agent", Agent::run(self.link.clone(), runtime)));
    }

    pub(crate) async fn kill_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.abort();
            let _ = agent.await;
        }
    }

    /// Stops the workers, as a server shutdown does.
    pub(crate) async fn stop_driver(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
    }

    /// Creates a ready cluster of the organization.
    pub(crate) async fn cluster<const N: usize>(&self, capacity: [(&str, i64); N]) -> Cluster {
        rows::ready_cluster(&self.db, Some(self.owner), model::Resources::from(capacity)).await
    }

    /// Creates a deployment with the given CPU.
    pub(crate) async fn deploy(
        &self,
        on: Option<&Cluster>,
        image: Option<&str>,
        cpu: i64,
        priority: i64,
    ) -> DeploymentId {
        let resources = model::Resources::from([("cpu", cpu)]);
        let new = rows::new_deployment(on.map(|on| on.id), image, resources, priority);
        self.deploy_new(&new).await
    }

    pub(crate) async fn deploy_new(&self, new: &NewDeployment) -> DeploymentId {
        rows::deployment(&self.db, self.owner, new).await.id
    }

    pub(crate) async fn delete(&self, id: DeploymentId) {
        let mut tx = self.db.begin(Actor::Anonymous).await.unwrap();
        store::deployment::request_delete(&mut tx, Scope::All, id).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn get(&self, id: DeploymentId) -> Option<Deployment> {
        self.all().await.into_iter().find(|deployment| deployment.id == id)
    }

    pub(crate) async fn all(&self) -> Vec<Deployment> {
        let (mut read, page) = (self.db.read().await.unwrap(), Page::first(10_000));
        store::deployment::list(&mut read, Scope::All, &Filter::default(), &page).await.unwrap()
    }

    pub(crate) async fn clusters(&self) -> Vec<Cluster> {
        let (mut read, page) = (self.db.read().await.unwrap(), Page::first(10_000));
        let filter = store::cluster::Filter::default();
        store::cluster::list(&mut read, Scope::All, &filter, &page).await.unwrap()
    }

    /// Free CPU of a cluster.
    pub(crate) async fn free_cpu(&self, id: ClusterId) -> i64 {
        let clusters = self.clusters().await;
        let cluster = clusters.iter().find(|cluster| cluster.id == id).unwrap();
        cluster.free().get("cpu").milli() / 1000
    }

    /// Waits until the deployment has the status.
    pub(crate) async fn until(&self, id: DeploymentId, status: Status) -> Deployment {
        until(status.as_str(), async || self.get(id).await.is_some_and(|d| d.status == status))
            .await;
        self.get(id).await.unwrap()
    }

    pub(crate) async fn until_deleted(&self, id: DeploymentId) {
        until("deleted", async || self.get(id).await.is_none()).await;
    }

    /// Waits until no worker has anything to do and the agent has reported everything.
    pub(crate) async fn until_idle(&self) {
        let mut quiet = 0;
        until("an idle queue", async || {
            let open = self.link.link.desired(false).await.unwrap();
            quiet = if open.is_empty() && depth(&self.db).await.0 == 0 { quiet + 1 } else { 0 };
            quiet == 10
        })
        .await;
    }

    /// The changes of a subject, in order.
    pub(crate) async fn changes_of(&self, subject: impl ToString) -> Vec<String> {
        changes_of(&self.db, subject).await
    }

    /// Opens the same database like another server.
    pub(crate) async fn replica(&self) -> Db {
        self.database.replica(Arc::new(SystemClock)).await
    }
}

/// The changes of a subject, in order.
pub(crate) async fn changes_of(db: &Db, subject: impl ToString) -> Vec<String> {
    db.number_events().await.unwrap();
    let subject = Some(subject.to_string());
    let filter = store::event::Filter { subject, ..Default::default() };
    let mut read = db.read().await.unwrap();
    let events = store::event::list(&mut read, Scope::All, &filter, 0, 10_000).await.unwrap();
    events.into_iter().map(|e| e.change.split_once('.').unwrap().1.to_owned()).collect()
}

/// A link to the control plane that can be made to fail.
pub(crate) struct FlakyLink {
    link: InProcess,
    /// Whether the link is disconnected.
    pub(crate) is_cut: AtomicBool,
    /// Number of reports still to reject.
    pub(crate) refusals: AtomicI64,
}

impl FlakyLink {
    fn new(db: &Db, seal: Arc<FakeSeal>) -> Self {
        let link = InProcess::new(db.clone(), Provider::Local, seal);
        Self { link, is_cut: AtomicBool::new(false), refusals: AtomicI64::new(0) }
    }

    fn check(&self) -> Result<(), LinkError> {
        if self.is_cut.load(Ordering::SeqCst) { Err(LinkError("cut".into())) } else { Ok(()) }
    }
}

impl Link for FlakyLink {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        self.check()?;
        self.link.desired(all).await
    }

    async fn changed(&self) {
        self.link.changed().await;
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        self.check()?;
        if self.refusals.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Err(LinkError("refused".into()));
        }
        self.link.report(reports).await
    }
}
