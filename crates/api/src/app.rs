//! Application state available to every handler.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::locks::Locks;
use base::{Stop, task};
use engine::placement::PlacementView;
use engine::rules::RulesReader;
use engine::search_index::SearchIndex;
use model::Time;
use model::cluster::{HeartbeatTimeouts, Provider};
use model::deployment::DEFAULT_MAX_PRIORITY;
use model::organization::quota::{DefaultQuotas, Limit, Subject};
use model::template::Executor;
use port::{Encryption, Monitored};
use store::Db;
use store::deployment::Limits;
use tokio::sync::Semaphore;

use crate::cache::{self, Cache};
use crate::edge::Edge;
use crate::edge::settings::EdgeSettings;
use crate::images::Images;
use crate::logs::Logs;
use crate::metrics_backend::MetricsBackend;
use crate::observe::Metrics;
use crate::oidc::Oidc;
use crate::password::Passwords;
use crate::pulse::Pulse;
use crate::relay::Relay;
use crate::throttle::Throttle;
use crate::token_use::{self, TokenUses};

/// Maximum number of concurrent uploads of images.
const MAX_UPLOADS: usize = 4;

/// API settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Deployment limits.
    pub limits: Limits,
    /// Quotas of organizations that have none of their own, except those with a setting of their
    /// own: see [`Settings::default_quotas`].
    pub quotas: DefaultQuotas,
    /// Minimum password length.
    pub password_min: usize,
    /// Lifetime of login tokens.
    pub token_life: Duration,
    /// Maximum lifetime of named tokens.
    pub token_max_life: Duration,
    /// Time limit of a request.
    pub request_timeout: Duration,
    /// Heartbeat timeouts of agents.
    pub heartbeat_timeouts: HeartbeatTimeouts,
    /// Container runtime reported by `self/info`.
    pub runtime: String,
    /// Why containers are less isolated than they could be, if so; reported by `self/liveliness`.
    pub runtime_warning: Option<String>,
    /// Verifier of OIDC tokens, if they are accepted.
    pub oidc: Oidc,
    /// SSO provider for clients of instances, if any.
    pub sso_endpoints: Option<SsoEndpoints>,
    /// Backend for instance metrics, if any.
    pub metrics: MetricsBackend,
    /// Maximum number of service accounts per organization.
    pub max_service_accounts: i64,
    /// Cluster providers that this server supports.
    pub providers: Vec<Provider>,
    /// Users who may publish templates with Terraform modules.
    pub terraform_templates: Publishers,
    /// Users who may adopt objects of external systems.
    pub adopt: Adopters,
    /// Executors with the setting that an unavailable one lacks.
    pub executors: Vec<(Executor, Option<String>)>,
    /// Hosts, proxies and limits of requests.
    pub edge: EdgeSettings,
    /// Who may create organizations and join them.
    pub sign_up: SignUp,
    /// Whether members may invite users, in addition to owners.
    pub member_invites: bool,
    /// Maximum lifetime of an invite.
    pub invite_max_life: Duration,
    /// Directory of uploads in progress.
    pub upload_dir: PathBuf,
    /// Maximum size of an image archive.
    pub max_image_bytes: u64,
}

/// Users who may publish templates that run programs on the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Publishers {
    /// Only the platform administrator.
    #[default]
    Admin,
    /// Every authenticated user.
    Everyone,
}

/// Users who may adopt existing objects of external systems as resources of environments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Adopters {
    /// Owners of the environment's organization.
    Owners,
    /// Only the platform administrator.
    #[default]
    Admin,
    /// Nobody.
    Off,
}

/// Who may create organizations and join them. The platform administrator always may create them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SignUp {
    /// Everyone who reaches the server creates organizations; invites admit users to existing ones.
    #[default]
    Open,
    /// Only invites admit users.
    Invite,
    /// Nobody joins: no invite is created or redeemed.
    Closed,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits {
                per_organization: 1000,
                per_cluster: 10_000,
                max_priority: DEFAULT_MAX_PRIORITY,
            },
            quotas: DefaultQuotas::default(),
            password_min: 1,
            token_life: Duration::from_hours(24),
            token_max_life: Duration::from_hours(365 * 24),
            request_timeout: Duration::from_secs(30),
            heartbeat_timeouts: HeartbeatTimeouts::default(),
            runtime: "none".into(),
            runtime_warning: None,
            oidc: Oidc::default(),
            sso_endpoints: None,
            metrics: MetricsBackend::default(),
            max_service_accounts: 50,
            providers: vec![Provider::Local, Provider::Agent],
            terraform_templates: Publishers::default(),
            adopt: Adopters::default(),
            executors: [Executor::Service, Executor::Deployment, Executor::Command]
                .map(|executor| (executor, None))
                .to_vec(),
            edge: EdgeSettings::default(),
            sign_up: SignUp::default(),
            member_invites: false,
            invite_max_life: Duration::from_hours(30 * 24),
            upload_dir: std::env::temp_dir(),
            max_image_bytes: 8 << 30,
        }
    }
}

impl Settings {
    /// Quotas of organizations that have none of their own.
    pub fn default_quotas(&self) -> DefaultQuotas {
        let mut quotas = self.quotas.clone();
        quotas.set(Subject::Deployments, Limit::count(self.limits.per_organization));
        quotas.set(Subject::ServiceAccounts, Limit::count(self.max_service_accounts));
        let streams = match self.edge.max_streams.organization {
            0 => Limit::Unlimited,
            max => i64::try_from(max).map_or(Limit::Unlimited, Limit::count),
        };
        quotas.set(Subject::Streams, streams);
        quotas
    }
}

/// SSO provider for clients of instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsoEndpoints {
    /// Token issuer.
    pub issuer: String,
    /// Token endpoint.
    pub token_url: String,
    /// URL of the signing keys (JWKS).
    pub jwks_url: String,
}

/// Server components that the application uses.
pub struct Parts<'a> {
    /// Worker metrics, also exposed at `/metrics`.
    pub metrics: &'a engine::Metrics,
    /// Placement.
    pub placement: PlacementView,
    /// Logs of local replicas.
    pub logs: Arc<dyn Logs>,
    /// Image store of the local agent.
    pub images: Arc<dyn Images>,
    /// Current catalog, quota and denied owners.
    pub rules: RulesReader,
    /// Decrypts secrets for agents.
    pub seal: Arc<dyn Encryption>,
    /// External systems in use.
    pub monitored: Vec<Arc<dyn Monitored>>,
    /// Search.
    pub search_index: SearchIndex,
}

/// The application. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// Shared state of [`App`].
pub struct Inner {
    pub(crate) db: Db,
    pub(crate) settings: Settings,
    pub(crate) passwords: Passwords,
    pub(crate) throttle: Throttle,
    pub(crate) edge: Edge,
    /// Redemptions in progress, by the hash of the code.
    pub(crate) redemptions: Locks<()>,
    pub(crate) pulse: Pulse,
    pub(crate) cache: Cache,
    pub(crate) token_uses: TokenUses,
    pub(crate) metrics: Metrics,
    pub(crate) placement: PlacementView,
    /// Logs of local replicas.
    pub(crate) logs: Arc<dyn Logs>,
    /// Image store of the local agent.
    pub(crate) images: Arc<dyn Images>,
    /// Limits concurrent uploads of images.
    pub(crate) uploads: Semaphore,
    /// Serialises what adds to the storage of an organization.
    pub(crate) storage: Locks<()>,
    pub(crate) rules: RulesReader,
    pub(crate) seal: Arc<dyn Encryption>,
    pub(crate) external_systems: Vec<Arc<dyn Monitored>>,
    pub(crate) search_index: SearchIndex,
    /// Logs of remote replicas.
    pub(crate) relay: Relay,
    pub(crate) started_at: Time,
    /// Set when the server stops; streams end then.
    pub(crate) stop: Stop,
}

impl Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    /// Creates the application and starts its cache invalidation.
    pub fn new(db: Db, settings: Settings, parts: Parts<'_>, stop: Stop) -> Self {
        let (token_uses, recorder) = token_use::channel(db.clone());
        task::spawn("token uses", recorder);
        let app = Self(Arc::new(Inner {
            passwords: Passwords::new(db.entropy()),
            throttle: Throttle::default(),
            edge: Edge::new(&settings.edge),
            redemptions: Locks::default(),
            pulse: Pulse::default(),
            cache: Cache::default(),
            token_uses,
            metrics: Metrics::new(parts.metrics),
            placement: parts.placement,
            logs: parts.logs,
            images: parts.images,
            uploads: Semaphore::new(MAX_UPLOADS),
            storage: Locks::default(),
            rules: parts.rules,
            seal: parts.seal,
            external_systems: parts.monitored,
            search_index: parts.search_index,
            relay: Relay::default(),
            started_at: db.now(),
            db: db.clone(),
            settings,
            stop,
        }));
        task::spawn("cached user invalidation", cache::follow(db, Arc::downgrade(&app.0)));
        app
    }
}
