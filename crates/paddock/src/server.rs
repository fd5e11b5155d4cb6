//! `paddock server`: puts the parts together, runs them, and takes them apart again in order.

mod executors;
mod fleet;
mod link;
mod logs;
pub(crate) mod machine;
mod outside;
mod providers;
mod rules;

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use agent::{Agent, AnyRuntime};
use anyhow::{Context, bail};
use api::metrics_backend::MetricsBackend;
use api::oidc::Oidc;
use api::{App, NoLogs, Parts};
use base::{OsEntropy, Stop, SystemClock, entropy, stop, task};
use engine::cluster::{Providers, Terraform};
use engine::environment::Environments;
use engine::finding::{self, Finder};
use engine::instance::{General, Instances};
use engine::placement::Placement;
use engine::resource::Resources;
use engine::scaling::{self, Scaling};
use engine::{Driver, Metrics, Options, deployment, housekeeping, local_agent, local_cluster};
use model::cluster::Provider;
use model::event::Actor;
use port::Seal;
use store::{Db, work};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::runtime;
use crate::settings::{Args, Database, LogFormat, Settings};
use link::InProcess;
use logs::LocalLogs;

/// Runs the server until it is told to stop.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let settings = args.resolve()?;
    start_logging(&settings.log, settings.log_format)?;
    let signal = base::signals::terminated().context("SIGTERM and SIGINT can't be handled")?;
    let _locks = take_files(&settings)?;
    // Before anything is made: a password that was made up would be lost if the port were taken.
    let listener = TcpListener::bind(settings.listen).await;
    let listener =
        listener.with_context(|| format!("--listen: {} can't be used", settings.listen))?;
    let db = open_database(&settings).await?;
    let (stopper, stop) = stop::channel();
    let metrics = Metrics::default();
    let (shelf, rulebook, rules) = rules::load(&settings.outside.rules)?;
    let (outside, mut foreign) = outside::build(&settings, &db)?;
    let providers = providers::build(&settings, outside.seal.clone(), name(&db, &settings));
    let executors = executors::build(&settings, &db, &rules, &mut foreign, &stop)?;
    let of_fleet = FleetParts {
        oidc: fleet::tokens(settings.outside.oidc.as_ref(), &db)?,
        metrics: fleet::metrics(settings.outside.metrics_url.as_deref(), &db, &mut foreign)?,
    };
    let placement = Placement::new(db.clone(), settings.placement.clone(), name(&db, &settings));
    let finder = Finder::new(db.clone());
    let mut runtime = None;
    if settings.local_agent {
        runtime = Some(runtime::start(settings.runtime.clone()).await?);
    }
    let parts = Parts {
        metrics: &metrics,
        outlook: placement.outlook(),
        logs: match &runtime {
            Some(runtime) => Arc::new(LocalLogs(runtime.clone())),
            None => Arc::new(NoLogs),
        },
        rules: rules.clone(),
        seal: outside.seal.clone(),
        foreign,
        finder: finder.clone(),
    };
    let app = App::new(
        db.clone(),
        api::Settings {
            executors: executors.known(),
            ..api_settings(&settings, of_fleet, providers.as_ref(), runtime.as_deref())
        },
        parts,
        stop.clone(),
    );
    let made_up = app.ensure_admin(settings.admin_password.as_deref()).await;
    let made_up =
        made_up.map_err(|problem| anyhow::anyhow!("the administrator can't be made: {problem}"))?;
    local_cluster::ensure(&db, &machine::capacity()).await?;
    housekeeping::start(&db).await?;
    greet(&listener, made_up.as_deref())?;

    let serving = task::spawn("http", api::serve(listener, app, stop.clone()));
    task::spawn("rules", rules::follow(shelf, rulebook, db.clone(), stop.clone()));
    let seal = outside.seal.clone();
    let clusters = Terraform::new(db.clone(), settings.patience, placement.outlook());
    let clusters = match providers {
        Some(providers) => clusters.with(providers),
        None => clusters,
    };
    let driver = driver(&db, metrics)
        .with(clusters)
        .with(Instances::new(db.clone(), rules.clone(), outside))
        .with(General { db: db.clone(), rules: rules.clone() })
        .with(Environments::new(db.clone(), executors.probe.clone()))
        .with(Resources::new(
            db.clone(),
            executors::asked_by(&executors, &settings, seal.clone(), name(&db, &settings)),
        ))
        .with(Scaling::new(db.clone(), rules.clone(), placement.outlook()));
    task::spawn("search", finding::follow(finder, stop.clone()));
    task::spawn("pools", scaling::follow(db.clone(), rules, stop.clone()));
    let working = task::spawn("driver", driver.run(stop.clone()));
    let placing = task::spawn("placement", placement.run(stop.clone()));
    let agent = runtime.map(|runtime| start_agent(&db, &settings, runtime, seal, &stop));
    signal.await;
    tracing::info!("stopping: requests and steps under way come to their end");
    stopper.stop();
    let _ = tokio::join!(serving, working, placing);
    if let Some(agent) = agent {
        let _ = agent.await;
    }
    if let Err(error) = db.close().await {
        tracing::warn!(%error, "the database was not left tidy; nothing is lost");
    }
    tracing::info!("stopped");
    Ok(())
}

pub(crate) fn start_logging(log: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(log)
        .with_context(|| format!("--log: {log:?} is no log filter, such as info"))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => {
            let is_terminal = std::io::stderr().is_terminal();
            logs.with_target(false).with_ansi(is_terminal).try_init()
        }
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging can't start: {error}"))
}

/// Makes the data directory and the SQLite file ours alone, for as long as these files live.
fn take_files(settings: &Settings) -> anyhow::Result<Vec<File>> {
    let dir = &settings.data_dir;
    let mut locks = vec![take_dir(dir)?];
    if let Database::Sqlite(path, _) = &settings.database
        && path.parent() != Some(dir)
    {
        // The usual place is locked already; this one may be in two servers' settings.
        locks.push(take("--database-url", path, &path.with_added_extension("lock"))?);
    }
    Ok(locks)
}

/// Makes a data directory, ours alone for as long as the file lives.
pub(crate) fn take_dir(dir: &Path) -> anyhow::Result<File> {
    // Hashes of passwords and the environments of deployments are in there.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("--data-dir: {} can't be made", dir.display()))?;
    take("--data-dir", dir, &dir.join("lock"))
}

fn take(setting: &str, what: &Path, lock: &Path) -> anyhow::Result<File> {
    let lock = File::create(lock)
        .with_context(|| format!("{setting}: {} can't be written to", what.display()))?;
    if lock.try_lock().is_err() {
        bail!("{setting}: {} is in use by another server", what.display());
    }
    Ok(lock)
}

async fn open_database(settings: &Settings) -> anyhow::Result<Db> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    match &settings.database {
        Database::Sqlite(path, durability) => {
            let opened = Db::open_sqlite(path, *durability, clock, entropy).await;
            let db = opened
                .with_context(|| format!("--database-url: {} can't be opened", path.display()))?;
            end_old_leases(&db).await?;
            Ok(db)
        }
        Database::Postgres(url) => Db::open_postgres(url, clock, entropy)
            .await
            .context("--database-url: PostgreSQL can't be used"),
    }
}

/// A SQLite file has one server only: after a crash it need not wait for its own old leases.
async fn end_old_leases(db: &Db) -> anyhow::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    work::orphan(&mut tx).await?;
    Ok(tx.commit().await?)
}

/// What the API asks of foreign systems.
struct FleetParts {
    oidc: Oidc,
    metrics: MetricsBackend,
}

fn api_settings(
    settings: &Settings,
    fleet: FleetParts,
    providers: Option<&Providers>,
    runtime: Option<&AnyRuntime>,
) -> api::Settings {
    let mut served = vec![Provider::Local, Provider::Agent];
    served.extend(providers.iter().flat_map(|all| all.all.iter().map(|(of, _)| *of)));
    let runtime = runtime.map_or("none", AnyRuntime::name);
    api::Settings {
        limits: settings.limits,
        password_min: settings.password_min,
        token_life: settings.token_life,
        request_timeout: settings.request_timeout,
        patience: settings.patience,
        runtime: runtime.into(),
        oidc: fleet.oidc,
        sign_in: fleet::sign_in(settings.outside.sso.as_ref()),
        metrics: fleet.metrics,
        providers: served,
        terraform_templates: settings.outside.terraform.publishers,
        ..api::Settings::default()
    }
}

/// What whoever started the server should know, on standard output.
fn greet(listener: &TcpListener, password: Option<&str>) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let mut out = std::io::stdout().lock();
    if let Some(password) = password {
        writeln!(out, "user admin has the password {password} (shown only now)")?;
    }
    writeln!(
        out,
        "listening on http://{address}  (console: http://{address}/  API: http://{address}/docs)"
    )?;
    out.flush().context("standard output can't be written to")
}

fn driver(db: &Db, metrics: Metrics) -> Driver {
    Driver::new(db.clone(), Options::default(), metrics)
        .with(deployment::Ending { db: db.clone() })
        .with(housekeeping::Housekeeping { db: db.clone() })
}

/// What this server is called where only one of several may do something.
///
/// As with the leases of work: the one server of a SQLite file takes its own lease again.
fn name(db: &Db, settings: &Settings) -> String {
    match settings.database {
        Database::Sqlite(..) => "this server".to_owned(),
        Database::Postgres(_) => format!("{:016x}", entropy::noise(db.entropy())),
    }
}

/// The agent of this machine, whenever it is this replica's turn.
fn start_agent(
    db: &Db,
    settings: &Settings,
    runtime: Arc<AnyRuntime>,
    seal: Arc<dyn Seal>,
    stop: &Stop,
) -> tokio::task::JoinHandle<()> {
    let holder = name(db, settings);
    let (leads, turn) = watch::channel(false);
    let lead = local_agent::lead(db.clone(), holder, leads, stop.clone());
    let link = Arc::new(InProcess::new(db.clone(), Provider::Local, seal));
    let serve = task::spawn("agent", serve_in_turn(link, runtime, turn));
    task::spawn("agent's lease", async move {
        lead.await;
        serve.abort();
    })
}

async fn serve_in_turn(
    link: Arc<InProcess>,
    runtime: Arc<AnyRuntime>,
    mut turn: watch::Receiver<bool>,
) {
    while turn.wait_for(|ours| *ours).await.is_ok() {
        tokio::select! {
            () = Agent::run(link.clone(), runtime.clone()) => {}
            _ = turn.wait_for(|ours| !*ours) => tracing::warn!("another replica's agent took over"),
        }
    }
}
