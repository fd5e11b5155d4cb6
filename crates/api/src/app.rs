//! What every handler can reach.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use base::{Stop, task};
use engine::finding::Finder;
use engine::placement::Outlook;
use engine::rules::Rules;
use model::Time;
use model::cluster::{Patience, Provider};
use model::template::Executor;
use port::{Seal, Watched};
use store::Db;
use store::deployment::Limits;

use crate::cache::{self, Cache};
use crate::logs::Logs;
use crate::metrics_backend::MetricsBackend;
use crate::observe::Metrics;
use crate::oidc::Oidc;
use crate::password::Passwords;
use crate::pulse::Pulse;
use crate::relay::Relay;
use crate::throttle::Throttle;

/// What of the API can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many deployments there may be.
    pub limits: Limits,
    /// The least characters of a password.
    pub password_min: usize,
    /// How long a sign-in lasts.
    pub token_life: Duration,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long agents may be silent.
    pub patience: Patience,
    /// What `self/info` says of the container runtime.
    pub runtime: String,
    /// What verifies tokens of other providers, if they are accepted.
    pub oidc: Oidc,
    /// Where clients of instances sign in, if instances have clients there.
    pub sign_in: Option<SignIn>,
    /// Where the metrics of instances are, if they are somewhere.
    pub metrics: MetricsBackend,
    /// How many service accounts an organization may have.
    pub max_service_accounts: i64,
    /// Whose clusters can be asked for.
    pub providers: Vec<Provider>,
    /// Who may publish templates with modules of Terraform.
    pub terraform_templates: Publishers,
    /// Who can carry out resources; with each that can't, which setting it lacks.
    pub executors: Vec<(Executor, Option<String>)>,
}

/// Who may publish something that has programs be run on the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Publishers {
    /// The platform administrator alone.
    #[default]
    Admin,
    /// Whoever is signed in.
    Everyone,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits { per_organization: 1000, per_cluster: 10_000 },
            password_min: 1,
            token_life: Duration::from_hours(24),
            request_timeout: Duration::from_secs(30),
            patience: Patience::default(),
            runtime: "none".into(),
            oidc: Oidc::default(),
            sign_in: None,
            metrics: MetricsBackend::default(),
            max_service_accounts: 50,
            providers: vec![Provider::Local, Provider::Agent],
            terraform_templates: Publishers::default(),
            executors: [Executor::Service, Executor::Deployment, Executor::Command]
                .map(|own| (own, None))
                .to_vec(),
        }
    }
}

/// Where clients of instances sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// Who issues their tokens.
    pub issuer: String,
    /// Where they get them.
    pub token_url: String,
    /// The keys that these are signed with.
    pub jwks_url: String,
}

/// What of the rest of the server the application asks.
pub struct Parts<'a> {
    /// The workers' series, shown at `/metrics` too.
    pub metrics: &'a engine::Metrics,
    /// Placement.
    pub outlook: Outlook,
    /// What replicas say.
    pub logs: Arc<dyn Logs>,
    /// The catalog, quota and denied owners in force.
    pub rules: Rules,
    /// Opens what is encrypted for agents.
    pub seal: Arc<dyn Seal>,
    /// The foreign systems in use.
    pub foreign: Vec<Arc<dyn Watched>>,
    /// Search.
    pub finder: Finder,
}

/// The application. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// What the application consists of.
pub struct Inner {
    pub(crate) db: Db,
    pub(crate) settings: Settings,
    pub(crate) passwords: Passwords,
    pub(crate) throttle: Throttle,
    pub(crate) pulse: Pulse,
    pub(crate) cache: Cache,
    pub(crate) metrics: Metrics,
    /// What placement can be asked.
    pub(crate) outlook: Outlook,
    /// What replicas on this machine say.
    pub(crate) logs: Arc<dyn Logs>,
    pub(crate) rules: Rules,
    pub(crate) seal: Arc<dyn Seal>,
    pub(crate) foreign: Vec<Arc<dyn Watched>>,
    pub(crate) finder: Finder,
    /// What replicas elsewhere say.
    pub(crate) relay: Relay,
    pub(crate) started_at: Time,
    /// Becomes true when the server stops: streams end then.
    pub(crate) stop: Stop,
}

impl Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    /// The application on a database.
    pub fn new(db: Db, settings: Settings, parts: Parts<'_>, stop: Stop) -> Self {
        let app = Self(Arc::new(Inner {
            passwords: Passwords::new(db.entropy()),
            throttle: Throttle::default(),
            pulse: Pulse::default(),
            cache: Cache::default(),
            metrics: Metrics::new(parts.metrics),
            outlook: parts.outlook,
            logs: parts.logs,
            rules: parts.rules,
            seal: parts.seal,
            foreign: parts.foreign,
            finder: parts.finder,
            relay: Relay::default(),
            started_at: db.now(),
            db: db.clone(),
            settings,
            stop,
        }));
        task::spawn("forget users that changed", cache::follow(db, Arc::downgrade(&app.0)));
        app
    }
}
