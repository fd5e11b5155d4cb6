//! `paddock server`: builds a server from the settings and runs it until SIGTERM or SIGINT.

mod database;
mod encryption;
mod executors;
mod external;
mod file_limit;
mod fleet;
mod lock;
mod logging;
pub(crate) mod machine;
mod private;
mod providers;
mod rules;

use std::io::Write as _;
use std::sync::Arc;

use ::server::Parts;
use anyhow::Context;
use base::task;
use engine::{housekeeping, local_cluster};
use port::Monitored;
use store::Db;
use tokio::net::TcpListener;

use crate::runtime;
use crate::settings::{Args, Settings};

pub(crate) use lock::lock_dir;
pub(crate) use logging::start_logging;

/// Runs the server until SIGTERM or SIGINT.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let settings = args.resolve()?;
    start_logging(&settings.log, settings.log_format)?;
    let signal = base::signals::terminated().context("cannot handle SIGTERM and SIGINT")?;
    let _locks = lock::lock_files(&settings)?;
    // Before anything is created: a generated password would be lost if the port were taken.
    let listener = TcpListener::bind(settings.listen).await;
    let listener =
        listener.with_context(|| format!("--listen: cannot bind {}", settings.listen))?;
    let db = database::open(&settings).await?;
    let (files, rules_writer, rules) = rules::load(&settings.external.rules)?;
    let parts = parts(&settings, &db, rules).await?;
    let machine = parts.machine.clone();
    let server = parts.build();
    let ensured = server.app.ensure_admin(settings.admin_password.as_deref()).await;
    let generated =
        ensured.map_err(|problem| anyhow::anyhow!("cannot create the user admin: {problem}"))?;
    let capacity = machine::capacity(&settings.data_dir);
    local_cluster::ensure(&db, machine.as_ref().unwrap_or(&capacity)).await?;
    if let Some(machine) = &machine {
        local_cluster::ensure_machine(&db, machine).await?;
    }
    housekeeping::start(&db).await?;
    engine::encryption::start(&db).await?;
    engine::quota::start(&db).await?;
    print_address(&listener, generated.as_deref())?;

    let running = server.run(listener);
    let reloading = task::spawn("rule files", rules::watch(files, rules_writer, db.clone()));
    signal.await;
    tracing::info!("stopping: waiting for requests and reconciliations under way");
    running.stop().await;
    reloading.abort();
    if let Err(error) = db.close().await {
        tracing::warn!(%error, "database not closed cleanly; no data is lost");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Builds the parts of a server from its settings.
async fn parts(
    settings: &Settings,
    db: &Db,
    rules: engine::rules::RulesReader,
) -> anyhow::Result<Parts> {
    let mut watched: Vec<Arc<dyn Monitored>> = Vec::new();
    let seal = encryption::open(settings, db, &mut watched).await?;
    let outside = external::build(settings, db, seal, &mut watched)?;
    let runtime = if settings.local_agent {
        Some(runtime::start(settings.runtime.clone()).await?)
    } else {
        None
    };
    // A simulated runtime takes nothing from the machine.
    let is_counted = runtime.as_ref().is_some_and(|runtime| is_real(runtime.name()));
    let machine = is_counted.then(|| {
        let capacity = machine::capacity(&settings.data_dir);
        machine::overcommitted(&capacity, settings.overcommit_permille)
    });
    let executors = executors::build(settings, db, &mut watched)?;
    let api = api::Settings {
        limits: settings.limits,
        quotas: settings.quotas.clone(),
        password_min: settings.password_min,
        token_life: settings.token_life,
        token_max_life: settings.token_max_life,
        request_timeout: settings.request_timeout,
        heartbeat_timeouts: settings.heartbeat_timeouts,
        runtime: runtime.as_ref().map_or("none", |runtime| runtime.name()).into(),
        runtime_warning: runtime.as_ref().and_then(|runtime| runtime.warning()),
        oidc: fleet::oidc(&settings.external, db)?,
        sso_endpoints: fleet::sso_endpoints(settings.external.sso.as_ref()),
        metrics: fleet::metrics(settings.external.metrics_url.as_deref(), db, &mut watched)?,
        terraform_templates: settings.external.terraform.publishers,
        adopt: settings.external.adopt,
        edge: file_limit::fit(settings.edge.http.clone(), file_limit::raise()),
        sign_up: settings.edge.sign_up,
        member_invites: settings.edge.member_invites,
        invite_max_life: settings.edge.invite_max_life,
        upload_dir: settings.data_dir.join("uploads"),
        max_image_bytes: settings.runtime.max_image_bytes,
        ..api::Settings::default()
    };
    let name = database::holder(settings, db);
    Ok(Parts {
        db: db.clone(),
        rules,
        providers: providers::build(settings, outside.seal.clone(), name.clone()),
        name,
        external: outside,
        executors: executors.external,
        missing: executors::missing,
        calls: Some(executors.calls),
        probe: executors.probe,
        observe_every: settings.external.observe_every,
        monitored: watched,
        runtime,
        machine,
        driver: engine::Options::default(),
        placement: settings.placement.clone(),
        heartbeat_timeouts: settings.heartbeat_timeouts,
        api,
    })
}

/// Whether a runtime of this name runs containers on this machine.
fn is_real(runtime: &str) -> bool {
    !matches!(runtime, "simulated" | "absent" | "none")
}

/// Prints the console's address and a generated password to standard output.
fn print_address(listener: &TcpListener, password: Option<&str>) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let mut out = std::io::stdout().lock();
    if let Some(password) = password {
        writeln!(out, "generated password of user admin: {password} (shown only once)")?;
    }
    writeln!(
        out,
        "listening on http://{address}  (console: http://{address}/  API: http://{address}/docs)"
    )?;
    out.flush().context("cannot write to stdout")
}
