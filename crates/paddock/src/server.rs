//! `paddock server`: makes the parts of a server from the settings, and runs it until it is told to stop.

mod database;
mod executors;
mod fleet;
mod lock;
mod logging;
pub(crate) mod machine;
mod outside;
mod providers;
mod rules;

use std::io::Write as _;
use std::sync::Arc;

use ::server::Parts;
use anyhow::Context;
use base::task;
use engine::{housekeeping, local_cluster};
use port::Watched;
use store::Db;
use tokio::net::TcpListener;

use crate::runtime;
use crate::settings::{Args, Settings};

pub(crate) use lock::lock_dir;
pub(crate) use logging::start_logging;

/// Runs the server until it is told to stop.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let settings = args.resolve()?;
    start_logging(&settings.log, settings.log_format)?;
    let signal = base::signals::terminated().context("SIGTERM and SIGINT can't be handled")?;
    let _locks = lock::lock_files(&settings)?;
    // Before anything is created: a generated password would be lost if the port were taken.
    let listener = TcpListener::bind(settings.listen).await;
    let listener =
        listener.with_context(|| format!("--listen: {} can't be used", settings.listen))?;
    let db = database::open(&settings).await?;
    let (files, rulebook, rules) = rules::load(&settings.outside.rules)?;
    let server = parts(&settings, &db, rules).await?.build();
    let ensured = server.app.ensure_admin(settings.admin_password.as_deref()).await;
    let generated =
        ensured.map_err(|problem| anyhow::anyhow!("administrator can't be created: {problem}"))?;
    local_cluster::ensure(&db, &machine::capacity()).await?;
    housekeeping::start(&db).await?;
    greet(&listener, generated.as_deref())?;

    let running = server.run(listener);
    let following = task::spawn("rules", rules::follow(files, rulebook, db.clone()));
    signal.await;
    tracing::info!("stopping: waiting for requests and reconciliations under way");
    running.stop().await;
    following.abort();
    if let Err(error) = db.close().await {
        tracing::warn!(%error, "database not closed cleanly; no data is lost");
    }
    tracing::info!("stopped");
    Ok(())
}

/// The parts of a server with these settings.
async fn parts(settings: &Settings, db: &Db, rules: engine::rules::Rules) -> anyhow::Result<Parts> {
    let mut watched: Vec<Arc<dyn Watched>> = Vec::new();
    let outside = outside::build(settings, db, &mut watched)?;
    let runtime = if settings.local_agent {
        Some(runtime::start(settings.runtime.clone()).await?)
    } else {
        None
    };
    let executors = executors::build(settings, db, &mut watched)?;
    let api = api::Settings {
        limits: settings.limits,
        password_min: settings.password_min,
        token_life: settings.token_life,
        request_timeout: settings.request_timeout,
        patience: settings.patience,
        runtime: runtime.as_ref().map_or("none", |runtime| runtime.name()).into(),
        oidc: fleet::tokens(settings.outside.oidc.as_ref(), db)?,
        sign_in: fleet::sign_in(settings.outside.sso.as_ref()),
        metrics: fleet::metrics(settings.outside.metrics_url.as_deref(), db, &mut watched)?,
        terraform_templates: settings.outside.terraform.publishers,
        ..api::Settings::default()
    };
    let name = database::holder(settings, db);
    Ok(Parts {
        db: db.clone(),
        rules,
        providers: providers::build(settings, outside.seal.clone(), name.clone()),
        name,
        outside,
        executors: executors.external,
        missing: executors::missing,
        calls: Some(executors.calls),
        probe: executors.probe,
        observe_every: settings.outside.observe_every,
        watched,
        runtime,
        driver: engine::Options::default(),
        placement: settings.placement.clone(),
        patience: settings.patience,
        api,
    })
}

/// Prints the console's address and a generated password to standard output.
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
