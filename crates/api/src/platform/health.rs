//! Server information and health: `self/…`. No authentication required.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use port::Monitored;
use serde::Deserialize;
use store::{lease, work};
use utoipa::IntoParams;
use wire::health::{Health, HealthCheck, Info, Pong};

use crate::page::Query;
use crate::{App, Problem};

/// Level of detail.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HealthType {
    /// `summary` or `detailed`.
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// Returns server information.
#[utoipa::path(get, path = "/api/v1/self/info", tag = "self", security(()),
    responses((status = 200, body = Info, description = "Server information"), Problem))]
pub(crate) async fn self_info(State(app): State<App>) -> Answer<Info> {
    Answer(Info {
        name: "paddock".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("PADDOCK_COMMIT").unwrap_or("unknown").into(),
        started_at: app.started_at,
        database: app.db.engine_name().into(),
        runtime: app.settings.runtime.clone(),
    })
}

/// Checks the health of the server.
#[utoipa::path(get, path = "/api/v1/self/liveliness", tag = "self", security(()), params(HealthType),
    responses((status = 200, body = Health, description = "Healthy"),
        (status = 503, body = Health, description = "Unhealthy"), Problem))]
pub(crate) async fn self_liveliness(
    State(app): State<App>,
    Query(query): Query<HealthType>,
) -> Result<(StatusCode, Answer<Health>), Problem> {
    let is_detailed = match query.kind.as_deref() {
        None | Some("summary") => false,
        Some("detailed") => true,
        Some(_) => return Err(Problem::field("type", "must be summary or detailed")),
    };
    let mut checks = checks(&app).await;
    let is_healthy = checks.iter().all(|check| check.status == "healthy");
    let (code, status) = verdict(is_healthy);
    // A failing external system is no reason to restart the server.
    checks.extend(app.external_systems.iter().map(|system| external_system(&**system)));
    Ok((code, Answer(Health { status: status.into(), checks: is_detailed.then_some(checks) })))
}

/// Checks whether the server accepts requests.
#[utoipa::path(get, path = "/api/v1/self/readiness", tag = "self", security(()),
    responses((status = 200, body = Health, description = "Ready"),
        (status = 503, body = Health, description = "Not ready"), Problem))]
pub(crate) async fn self_readiness(State(app): State<App>) -> (StatusCode, Answer<Health>) {
    let is_ready = !app.stop.is_set() && database(&app).await.status == "healthy";
    let (code, status) = verdict(is_ready);
    (code, Answer(Health { status: status.into(), checks: None }))
}

/// Checks whether the server has started. It answers only after startup.
#[utoipa::path(get, path = "/api/v1/self/started", tag = "self", security(()),
    responses((status = 200, body = Health, description = "Started"), Problem))]
pub(crate) async fn self_started() -> Answer<Health> {
    Answer(Health { status: "healthy".into(), checks: None })
}

/// Pings the server.
#[utoipa::path(get, path = "/api/v1/self/ping", tag = "self", security(()),
    responses((status = 200, body = Pong, description = "Pong"), Problem))]
pub(crate) async fn self_ping(State(app): State<App>) -> Answer<Pong> {
    Answer(Pong { response: "pong".into(), at: app.db.now() })
}

fn verdict(is_healthy: bool) -> (StatusCode, &'static str) {
    if is_healthy {
        (StatusCode::OK, "healthy")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unhealthy")
    }
}

async fn checks(app: &App) -> Vec<HealthCheck> {
    vec![database(app).await, queue(app).await, agent(app).await]
}

fn external_system(system: &dyn Monitored) -> HealthCheck {
    let outcome = match system.health() {
        port::Health::Up => Ok(format!("{} requests", system.counts().calls)),
        port::Health::Down { reason } => Err(reason),
    };
    check(system.name(), outcome)
}

fn check(name: &str, outcome: Result<String, String>) -> HealthCheck {
    let name = name.to_owned();
    match outcome {
        Ok(detail) => HealthCheck { name, status: "healthy".into(), detail },
        Err(detail) => HealthCheck { name, status: "unhealthy".into(), detail },
    }
}

async fn database(app: &App) -> HealthCheck {
    let query = async { store::event::last(&mut app.db.read().await?).await };
    let outcome = query.await.map(|seq| format!("{}, {seq} events", app.db.engine_name()));
    check("database", outcome.map_err(|_| "unavailable".to_owned()))
}

async fn queue(app: &App) -> HealthCheck {
    let query = async { work::depth(&mut app.db.read().await?).await };
    let outcome =
        query.await.map(|(depth, failing)| format!("{depth} keys queued, {failing} failing"));
    check("work queue", outcome.map_err(|_: store::Error| "unavailable".to_owned()))
}

async fn agent(app: &App) -> HealthCheck {
    let query = async {
        lease::is_held(&mut app.db.read().await?, engine::local_agent::LEASE, app.db.now()).await
    };
    let outcome = match query.await {
        Ok(true) => Ok(match &app.settings.runtime_warning {
            None => format!("local agent active, runtime {}", app.settings.runtime),
            Some(why) => {
                format!("local agent active, runtime {}; warning: {why}", app.settings.runtime)
            }
        }),
        Ok(false) => Ok("no local agent".to_owned()),
        Err(_) => Err("unavailable".to_owned()),
    };
    check("agent", outcome)
}
