//! A complete server in this process: API, workers and a simulated agent, on a free port.

use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Runtime, Simulated, simulated};
use api::{Adopters, Publishers};
use base::Clock;
use base::task::Tasks;
use engine::cluster::Providers;
use engine::instance::ExternalSystems;
use engine::local_agent;
use engine::placement;
use engine::rules::{ActiveRules, RulesWriter};
use model::cluster::{HeartbeatTimeouts, Provider};
use model::event::Actor;
use model::kind::Catalog;
use model::quota::QuotaList;
use model::template::Executor;
use port::{Dns, Encryption, Sso};
use serde_json::{Value, json};
use server::{InProcess, Parts, Running};
use store::{Db, lease};
use tokio::net::TcpListener;

use crate::images::WithImages;
use crate::leaks::CheckAtEnd;
use crate::{
    Client, Database, Engine, FakeDns, FakeImages, FakeOperation, FakeProbe, FakeSeal, FakeSso,
    TestClock,
};

/// The administrator's password.
const ADMIN_PASSWORD: &str = "admin password";

/// Settings of a test's server.
pub struct TestSettings {
    /// Settings of the API.
    pub api: api::Settings,
    /// Settings of placement.
    pub placement: placement::Settings,
    /// Heartbeat timeouts of agents.
    pub heartbeat_timeouts: HeartbeatTimeouts,
    /// Options of the simulated runtime.
    pub runtime: simulated::Options,
    /// The image store of the server's machine, if it has one.
    pub images: Option<Arc<FakeImages>>,
    /// What the machine of the simulated runtime may give; not counted if none.
    pub machine: Option<model::Resources>,
    /// Runs the agent under a single lease of this duration, never renewed: for a clock that jumps.
    pub agent_lease: Option<Duration>,
    /// Runs only the API: no workers, no agent.
    pub api_only: bool,
    /// The catalog of kinds; the built-in one if none.
    pub catalog: Option<Catalog>,
    /// The quota list.
    pub quota: Option<QuotaList>,
    /// Node pools.
    pub pools: Vec<model::scaling::Pool>,
    /// DNS.
    pub dns: Option<Arc<FakeDns>>,
    /// SSO.
    pub sso: Option<Arc<FakeSso>>,
    /// Encryption.
    pub seal: Arc<FakeSeal>,
    /// Provider of clusters, both for Kubernetes and Terraform.
    pub provider: Option<Arc<FakeOperation>>,
    /// Executor of resources of Terraform, Consul and Vault.
    pub executor: Arc<FakeOperation>,
    /// Executors that the server lacks.
    pub missing: Vec<Executor>,
    /// Health checks of environments.
    pub probe: Arc<FakeProbe>,
}

impl Default for TestSettings {
    fn default() -> Self {
        // Terraform modules do not run in tests.
        let api = api::Settings {
            terraform_templates: Publishers::Everyone,
            adopt: Adopters::Owners,
            ..api::Settings::default()
        };
        Self {
            api,
            placement: placement::Settings::default(),
            images: None,
            machine: None,
            heartbeat_timeouts: HeartbeatTimeouts::default(),
            runtime: simulated::Options::default(),
            agent_lease: None,
            api_only: false,
            catalog: None,
            quota: None,
            pools: Vec::new(),
            dns: None,
            sso: None,
            seal: Arc::default(),
            provider: None,
            executor: Arc::default(),
            missing: Vec::new(),
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
    /// An unauthenticated client.
    pub client: Client,
    _running: Run,
    _leaks: CheckAtEnd,
}

impl TestPaddock {
    /// Starts a server with default settings.
    pub async fn start(engine: Engine) -> Self {
        Self::start_with(engine, TestSettings::default()).await
    }

    /// Starts a server with settings.
    pub async fn start_with(engine: Engine, settings: TestSettings) -> Self {
        // rustls needs a crypto provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock = Arc::new(TestClock::default());
        let database = Database::new(engine, clock.clone()).await;
        let (client, running) = run(&database.db, settings).await;
        let leaks = CheckAtEnd(client.leaks.clone());
        Self { database, clock, client, _running: running, _leaks: leaks }
    }

    /// Starts two servers at the same time on one empty database.
    pub async fn start_two(engine: Engine) -> (Self, Replica) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock = Arc::new(TestClock::default());
        let (database, db) = Database::opened_twice(engine, clock.clone()).await;
        let ((client, running), (other, others)) = tokio::join!(
            run(&database.db, TestSettings::default()),
            run(&db, TestSettings::default())
        );
        let leaks = CheckAtEnd(client.leaks.clone());
        let other = other.checked_with(&client);
        let first = Self { database, clock, client, _running: running, _leaks: leaks };
        (first, Replica { client: other, _running: others })
    }

    /// Starts another server replica with its own connection to the database.
    pub async fn replica(&self, settings: TestSettings) -> Replica {
        let db = self.database.replica(self.clock.clone() as Arc<dyn Clock>).await;
        let (client, running) = run(&db, settings).await;
        let client = client.checked_with(&self.client);
        Replica { client, _running: running }
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.database.db
    }

    /// Creates an organization and its owner of the same name.
    pub async fn owner(&self, name: &str) -> Client {
        let body = json!({
            "user": {"username": name, "password": "secret", "display_name": name},
            "organization": {"name": name},
        });
        let created = self.client.put("/user/create/", body).await.expect(201);
        let id = |of: &str| created[of]["id"].as_str().expect("an id").to_owned();
        let (leaks, tenant) = (&self.client.leaks, id("organization").into());
        leaks.add_user(&tenant, name);
        leaks.add_unique(&tenant, &tenant);
        leaks.add_unique(&tenant, &id("user"));
        self.sign_in(name, "secret").await
    }

    /// Creates a member of the organization of `owner`.
    pub async fn member(&self, owner: &Client, name: &str) -> Client {
        self.user(owner, name, "member").await
    }

    /// Creates a user of the organization of `owner` with a role.
    pub async fn user(&self, owner: &Client, name: &str, role: &str) -> Client {
        let code = owner.patch("/organization/invite/", json!({"role": role})).await.text("code");
        let body = json!({"code": code, "username": name, "password": "secret"});
        self.client.post("/organization/invite/", body).await.expect(201);
        if let Some(tenant) = owner.tenant() {
            self.client.leaks.add_user(tenant, name);
        }
        self.sign_in(name, "secret").await
    }

    /// The platform administrator.
    pub async fn admin(&self) -> Client {
        self.sign_in("admin", ADMIN_PASSWORD).await
    }

    /// Logs in.
    pub async fn sign_in(&self, username: &str, password: &str) -> Client {
        let body = json!({"username": username, "password": password});
        let token = self.client.post("/user/login/", body).await.text("token");
        let tenant = self.client.leaks.tenant_of(username);
        self.client.with_token(&token).of_tenant(tenant)
    }

    /// Creates a cluster in the caller's organization and waits until it is ready. It has memory
    /// for containers unless `capacity` says how much.
    pub async fn cluster(&self, owner: &Client, mut capacity: Value) -> String {
        if capacity["ram"].is_null() {
            capacity["ram"] = json!("64Gi");
        }
        let body = json!({"name": "main", "capacity": capacity});
        let id = owner.post("/api/v1/clusters", body).await.text("id");
        self.until(owner, &format!("/api/v1/clusters/{id}"), "status", "ready").await;
        id
    }

    /// Polls until a field has a value; returns the response.
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

    /// Polls until the response is 404.
    pub async fn until_deleted(&self, client: &Client, path: &str) {
        for _ in 0..600 {
            if client.get(path).await.status == 404 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{path} still exists");
    }
}

/// Another server replica on the same database.
pub struct Replica {
    /// An unauthenticated client.
    pub client: Client,
    _running: Run,
}

/// Running tasks; they end on drop.
type Run = (Running, Tasks<()>);

async fn run(db: &Db, settings: TestSettings) -> (Client, Run) {
    let (rules_writer, rules) = RulesWriter::new(ActiveRules {
        catalog: Arc::new(settings.catalog.unwrap_or_else(Catalog::built_in)),
        quota: settings.quota.map(Arc::new),
        denied: Arc::default(),
        pools: Arc::new(settings.pools),
    });
    // The rules stay in force as long as the test runs.
    std::mem::forget(rules_writer);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let seal: Arc<dyn Encryption> = settings.seal;
    let name = format!("test {}", base::entropy::random_u64(db.entropy()));
    let runtime = Simulated::new(settings.runtime);
    let runtime: Arc<dyn Runtime> = match settings.images {
        Some(images) => Arc::new(WithImages { runtime, images }),
        None => Arc::new(runtime),
    };
    let link = Arc::new(InProcess::new(db.clone(), Provider::Local, seal.clone()));
    let mut executors = executors(&settings.executor);
    executors.retain(|(of, _)| !settings.missing.contains(of));
    let provided = |fake| providers(&fake, seal.clone(), &base, &name);
    let parts = Parts {
        db: db.clone(),
        rules,
        providers: settings.provider.map(provided),
        name,
        external: ExternalSystems {
            dns: settings.dns.map(|dns| dns as Arc<dyn Dns>),
            sso: settings.sso.map(|sso| sso as Arc<dyn Sso>),
            seal,
            domain: None,
            rotate_every: None,
        },
        executors,
        missing: |executor| format!("Executor {executor} is not configured."),
        calls: Some(settings.executor),
        probe: settings.probe,
        observe_every: Duration::from_mins(10),
        monitored: Vec::new(),
        runtime: settings.agent_lease.is_none().then(|| runtime.clone()),
        machine: settings.machine,
        driver: engine::Options::default(),
        placement: settings.placement,
        heartbeat_timeouts: settings.heartbeat_timeouts,
        api: settings.api,
    };
    let server = parts.build();
    server.app.ensure_admin(Some(ADMIN_PASSWORD)).await.expect("an administrator");
    let running = if settings.api_only { server.serve(listener) } else { server.run(listener) };
    let mut agent = Tasks::new();
    if let Some(life) = settings.agent_lease {
        let mut tx = db.begin(Actor::Agent).await.expect("a transaction");
        let lease = lease::acquire(&mut tx, local_agent::LEASE, "test", life).await;
        assert!(lease.expect("a lease").is_some(), "another agent holds the lease");
        tx.commit().await.expect("a lease");
        agent.spawn("agent", Agent::run(link, runtime));
    }
    (Client::new(&base), (running, agent))
}

/// In-memory executors of external systems.
pub fn executors(fake: &Arc<FakeOperation>) -> Vec<(Executor, Arc<dyn port::Operation>)> {
    let external = [Executor::Terraform, Executor::ConsulKv, Executor::VaultSecret];
    external.map(|of| (of, fake.clone() as Arc<dyn port::Operation>)).to_vec()
}

/// In-memory providers of clusters.
pub fn providers(
    fake: &Arc<FakeOperation>,
    seal: Arc<dyn Encryption>,
    server: &str,
    holder: &str,
) -> Providers {
    let all = [Provider::Kubernetes, Provider::Terraform]
        .map(|of| (of, fake.clone() as Arc<dyn port::Operation>));
    let (server, image, holder) = (server.into(), "paddock:test".into(), holder.into());
    Providers { all: all.to_vec(), seal, server, image, holder }
}
