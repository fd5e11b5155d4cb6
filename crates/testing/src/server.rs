//! A whole server in this process: API, workers and a simulated agent, on a port of its own.

use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Link, LinkError, Runtime as _, Simulated, simulated};
use api::{App, Lines, Logs, Parts, Publishers};
use base::{Clock, Stop, Stopper, stop, task};
use engine::cluster::Providers;
use engine::environment::Environments;
use engine::executor::{Commands, Deployments, Services};
use engine::finding::{self, Finder};
use engine::instance::{General, Instances, Outside};
use engine::placement::{self, Placement};
use engine::resource::{Executors, Resources};
use engine::rules::{InForce, Rulebook, Rules};
use engine::scaling::{self, Scaling};
use engine::{Driver, Metrics, Options, cluster, deployment, local_agent, sealed};
use futures_util::future::BoxFuture;
use model::ReplicaId;
use model::agent::{Desired, Report};
use model::cluster::{Patience, Provider};
use model::kind::Catalog;
use model::log::LogsFrom;
use model::quota::QuotaList;
use port::{Dns, Seal, Sso};
use serde_json::{Value, json};
use store::Db;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};

use crate::{
    Client, Database, Engine, FakeDns, FakeOperation, FakeProbe, FakeSeal, FakeSso, TestClock,
};

/// The administrator's password.
const ADMIN_PASSWORD: &str = "admin password";

/// How a test's server differs from a usual one.
pub struct TestSettings {
    /// The API's settings.
    pub api: api::Settings,
    /// How placement decides.
    pub placement: placement::Settings,
    /// How long agents may be silent.
    pub patience: Patience,
    /// How the simulated runtime behaves.
    pub runtime: simulated::Options,
    /// Leaves out workers and agent: nothing moves.
    pub is_still: bool,
    /// The kinds, if not those that are built in.
    pub catalog: Option<Catalog>,
    /// The quota list.
    pub quota: Option<QuotaList>,
    /// What may grow and shrink.
    pub pools: Vec<model::scaling::Pool>,
    /// Foreign systems.
    pub dns: Option<Arc<FakeDns>>,
    /// Foreign systems.
    pub sso: Option<Arc<FakeSso>>,
    /// Foreign systems.
    pub seal: Arc<FakeSeal>,
    /// Who makes clusters, whether with Kubernetes or Terraform.
    pub provider: Option<Arc<FakeOperation>>,
    /// Carries out resources, whether of Terraform, Consul or Vault.
    pub executor: Arc<FakeOperation>,
    /// Says whether environments work.
    pub probe: Arc<FakeProbe>,
}

impl Default for TestSettings {
    fn default() -> Self {
        // Modules run nowhere here, and all executors are there.
        let api = api::Settings {
            terraform_templates: Publishers::Everyone,
            executors: model::template::Executor::ALL.iter().map(|of| (*of, None)).collect(),
            ..api::Settings::default()
        };
        Self {
            api,
            placement: placement::Settings::default(),
            patience: Patience::default(),
            runtime: simulated::Options::default(),
            is_still: false,
            catalog: None,
            quota: None,
            pools: Vec::new(),
            dns: None,
            sso: None,
            seal: Arc::default(),
            provider: None,
            executor: Arc::default(),
            probe: Arc::default(),
        }
    }
}

/// A server that ends with the test.
pub struct TestPaddock {
    /// Its database.
    pub database: Database,
    /// Its clock.
    pub clock: Arc<TestClock>,
    /// Somebody who is not signed in.
    pub client: Client,
    stopper: Stopper,
}

impl TestPaddock {
    /// A usual server.
    pub async fn start(engine: Engine) -> Self {
        Self::start_with(engine, TestSettings::default()).await
    }

    /// A server with settings.
    pub async fn start_with(engine: Engine, settings: TestSettings) -> Self {
        // The client is built with rustls, which wants to know what computes for it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock = Arc::new(TestClock::default());
        let database = Database::new(engine, clock.clone()).await;
        let (stopper, stop) = stop::channel();
        let client = run(&database.db, settings, stop).await;
        Self { database, clock, client, stopper }
    }

    /// Two servers that start at the same time on one empty database.
    pub async fn start_two(engine: Engine) -> (Self, Replica) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock = Arc::new(TestClock::default());
        let (database, db) = Database::opened_twice(engine, clock.clone()).await;
        let ((stopper, stop), (other, other_stop)) = (stop::channel(), stop::channel());
        let (client, replica) = tokio::join!(
            run(&database.db, TestSettings::default(), stop),
            run(&db, TestSettings::default(), other_stop)
        );
        (Self { database, clock, client, stopper }, Replica { client: replica, _stopper: other })
    }

    /// One more server on the same database, with a database connection of its own.
    pub async fn replica(&self, settings: TestSettings) -> Replica {
        let db = self.database.replica(self.clock.clone() as Arc<dyn Clock>).await;
        let (stopper, stop) = stop::channel();
        Replica { client: run(&db, settings, stop).await, _stopper: stopper }
    }

    /// The database itself.
    pub fn db(&self) -> &Db {
        &self.database.db
    }

    /// The owner of a new organization; both are named so.
    pub async fn owner(&self, name: &str) -> Client {
        let body = json!({
            "user": {"username": name, "password": "secret", "display_name": name},
            "organization": {"name": name},
        });
        self.client.put("/user/create/", body).await.expect(201);
        self.sign_in(name, "secret").await
    }

    /// A member of the organization of `owner`.
    pub async fn member(&self, owner: &Client, name: &str) -> Client {
        let code = owner.patch("/organization/invite/", json!({})).await.text("code");
        let body = json!({"code": code, "username": name, "password": "secret"});
        self.client.post("/organization/invite/", body).await.expect(201);
        self.sign_in(name, "secret").await
    }

    /// The platform administrator.
    pub async fn admin(&self) -> Client {
        self.sign_in("admin", ADMIN_PASSWORD).await
    }

    /// Somebody who signs in.
    pub async fn sign_in(&self, username: &str, password: &str) -> Client {
        let body = json!({"username": username, "password": password});
        let token = self.client.post("/user/login/", body).await.text("token");
        self.client.with_token(&token)
    }

    /// A ready cluster of the caller's organization.
    pub async fn cluster(&self, owner: &Client, capacity: Value) -> String {
        let body = json!({"name": "main", "capacity": capacity});
        let id = owner.post("/api/v1/clusters", body).await.text("id");
        self.until(owner, &format!("/api/v1/clusters/{id}"), "status", "ready").await;
        id
    }

    /// Asks again until the field has that value; the whole answer then.
    pub async fn until(&self, client: &Client, path: &str, field: &str, value: &str) -> Value {
        let mut last = Value::Null;
        for _ in 0..600 {
            last = client.get(path).await.json;
            if last[field] == value {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{path}: {field} does not become {value}: {last:#}");
    }

    /// Asks again until it is gone.
    pub async fn until_gone(&self, client: &Client, path: &str) {
        for _ in 0..600 {
            if client.get(path).await.status == 404 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{path} does not go away");
    }
}

impl Drop for TestPaddock {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// One more server on the same database.
pub struct Replica {
    /// Somebody who is not signed in.
    pub client: Client,
    _stopper: Stopper,
}

async fn run(db: &Db, settings: TestSettings, stop: Stop) -> Client {
    let metrics = Metrics::default();
    let holder = format!("test {}", base::entropy::noise(db.entropy()));
    let placement = Placement::new(db.clone(), settings.placement, holder);
    let runtime = Arc::new(Simulated::new(settings.runtime));
    let logs = Arc::new(TestLogs(runtime.clone()));
    let (rulebook, rules) = Rulebook::new(InForce {
        catalog: Arc::new(settings.catalog.unwrap_or_else(Catalog::built_in)),
        quota: settings.quota.map(Arc::new),
        denied: Arc::default(),
        pools: Arc::new(settings.pools),
    });
    // What is in force stays in force as long as the server runs.
    let mut last = stop.clone();
    task::spawn("rules", async move {
        last.told().await;
        drop(rulebook);
    });
    let seal: Arc<dyn Seal> = settings.seal;
    let finder = Finder::new(db.clone());
    task::spawn("search", finding::follow(finder.clone(), stop.clone()));
    let parts = Parts {
        metrics: &metrics,
        outlook: placement.outlook(),
        logs,
        rules: rules.clone(),
        seal: seal.clone(),
        foreign: Vec::new(),
        finder,
    };
    let mut api = settings.api;
    if settings.provider.is_some() {
        api.providers = Provider::ALL.to_vec();
    }
    let limits = api.limits;
    let app = App::new(db.clone(), api, parts, stop.clone());
    app.ensure_admin(Some(ADMIN_PASSWORD)).await.expect("an administrator");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    task::spawn("http", api::serve(listener, app, stop.clone()));
    if !settings.is_still {
        let outside = Outside {
            dns: settings.dns.map(|dns| dns as Arc<dyn Dns>),
            sso: settings.sso.map(|sso| sso as Arc<dyn Sso>),
            seal: seal.clone(),
            domain: None,
            rotate_every: None,
        };
        let mut clusters =
            cluster::Terraform::new(db.clone(), settings.patience, placement.outlook());
        if let Some(provider) = settings.provider {
            clusters = clusters.with(providers(&provider, seal.clone(), &base));
        }
        let driver = Driver::new(db.clone(), Options::default(), metrics)
            .with(clusters)
            .with(deployment::Ending { db: db.clone() })
            .with(Instances::new(db.clone(), rules.clone(), outside))
            .with(Scaling::new(db.clone(), rules.clone(), placement.outlook()))
            .with(General { db: db.clone(), rules: rules.clone() })
            .with(Environments::new(db.clone(), settings.probe))
            .with(Resources::new(
                db.clone(),
                executors(db, &rules, limits, settings.executor, seal.clone()),
            ));
        task::spawn("pools", scaling::follow(db.clone(), rules, stop.clone()));
        task::spawn("driver", driver.run(stop.clone()));
        task::spawn("placement", placement.run(stop.clone()));
        start_agent(db, runtime, seal, stop);
    }
    Client::new(&base)
}

/// Paddock's own executors, and one in memory for those of foreign systems and for calls.
pub fn executors(
    db: &Db,
    rules: &Rules,
    limits: store::deployment::Limits,
    foreign: Arc<FakeOperation>,
    seal: Arc<dyn Seal>,
) -> Executors {
    use model::template::Executor as Of;
    let deployments = || Deployments::new(db.clone(), limits);
    let all: Vec<(Of, Arc<dyn port::Operation>)> = vec![
        (Of::Terraform, foreign.clone()),
        (Of::ConsulKv, foreign.clone()),
        (Of::VaultSecret, foreign.clone()),
        (Of::Deployment, Arc::new(deployments())),
        (Of::Service, Arc::new(Services::new(db.clone(), rules.clone()))),
        (Of::Command, Arc::new(Commands::new(deployments(), Some(foreign)))),
    ];
    let server = format!("test {}", base::entropy::noise(db.entropy()));
    Executors { all, seal, server, observe_every: Duration::from_mins(10) }
}

fn providers(provider: &Arc<FakeOperation>, seal: Arc<dyn Seal>, base: &str) -> Providers {
    let all = [Provider::Kubernetes, Provider::Terraform]
        .map(|of| (of, provider.clone() as Arc<dyn port::Operation>));
    Providers {
        all: all.to_vec(),
        seal,
        server: base.to_owned(),
        image: "paddock:test".into(),
        holder: base.to_owned(),
    }
}

fn start_agent(db: &Db, runtime: Arc<Simulated>, seal: Arc<dyn Seal>, mut stop: Stop) {
    let (leads, mut turn) = watch::channel(false);
    let holder = format!("test {}", base::entropy::noise(db.entropy()));
    task::spawn("lease", local_agent::lead(db.clone(), holder, leads, stop.clone()));
    let link = Arc::new(TestLink { db: db.clone(), signal: Mutex::new(db.event_signal()), seal });
    task::spawn("agent", async move {
        if turn.wait_for(|ours| *ours).await.is_ok() {
            tokio::select! {
                () = Agent::run(link, runtime) => {}
                () = stop.told() => {}
            }
        }
    });
}

struct TestLogs(Arc<Simulated>);

impl Logs for TestLogs {
    fn logs(
        &self,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> BoxFuture<'_, Result<Lines, String>> {
        Box::pin(async move { Ok(self.0.logs(replica, from, follow)) })
    }
}

struct TestLink {
    db: Db,
    signal: Mutex<watch::Receiver<u64>>,
    seal: Arc<dyn Seal>,
}

impl Link for TestLink {
    async fn desired(&self, all: bool) -> Result<Vec<Desired>, LinkError> {
        let desired = local_agent::desired(&self.db, Provider::Local, all).await;
        let desired = desired.map_err(|error| LinkError(error.to_string()))?;
        Ok(sealed::open_all(&*self.seal, desired).await.0)
    }

    async fn changed(&self) {
        // What could not be opened is looked for again after a while.
        let mut signal = self.signal.lock().await;
        let _ = tokio::time::timeout(Duration::from_secs(1), signal.changed()).await;
    }

    async fn report(&self, reports: &[Report]) -> Result<(), LinkError> {
        let taken = local_agent::report(&self.db, reports).await;
        taken.map_err(|error| LinkError(error.to_string()))
    }
}
