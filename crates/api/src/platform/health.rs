//! The service about itself: `self/…`. No token is needed.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use port::Watched;
use serde::Deserialize;
use store::{lease, work};
use utoipa::IntoParams;
use wire::health::{Health, HealthCheck, Info, Pong};

use crate::page::Query;
use crate::{App, Problem};

/// How much to tell.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HealthType {
    /// `summary` or `detailed`.
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// What runs here, since when.
#[utoipa::path(get, path = "/api/v1/self/info", tag = "self", security(()),
    responses((status = 200, body = Info, description = "About the service"), Problem))]
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

/// Is it alive and well?
#[utoipa::path(get, path = "/api/v1/self/liveliness", tag = "self", security(()), params(HealthType),
    responses((status = 200, body = Health, description = "Well"),
        (status = 503, body = Health, description = "Not well"), Problem))]
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
    let is_well = checks.iter().all(|check| check.status == "healthy");
    let (code, status) = verdict(is_well);
    // A foreign system that is down is no reason to start this one anew.
    checks.extend(app.foreign.iter().map(|system| foreign(&**system)));
    Ok((code, Answer(Health { status: status.into(), checks: is_detailed.then_some(checks) })))
}

/// Can it take requests?
#[utoipa::path(get, path = "/api/v1/self/readiness", tag = "self", security(()),
    responses((status = 200, body = Health, description = "Ready"),
        (status = 503, body = Health, description = "Not ready"), Problem))]
pub(crate) async fn self_readiness(State(app): State<App>) -> (StatusCode, Answer<Health>) {
    let is_ready = !app.stop.is_set() && database(&app).await.status == "healthy";
    let (code, status) = verdict(is_ready);
    (code, Answer(Health { status: status.into(), checks: None }))
}

/// Has it started? It answers only when it has.
#[utoipa::path(get, path = "/api/v1/self/started", tag = "self", security(()),
    responses((status = 200, body = Health, description = "Started"), Problem))]
pub(crate) async fn self_started() -> Answer<Health> {
    Answer(Health { status: "healthy".into(), checks: None })
}

/// Is anybody there?
#[utoipa::path(get, path = "/api/v1/self/ping", tag = "self", security(()),
    responses((status = 200, body = Pong, description = "Yes"), Problem))]
pub(crate) async fn self_ping(State(app): State<App>) -> Answer<Pong> {
    Answer(Pong { response: "pong".into(), at: app.db.now() })
}

fn verdict(is_good: bool) -> (StatusCode, &'static str) {
    if is_good {
        (StatusCode::OK, "healthy")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unhealthy")
    }
}

async fn checks(app: &App) -> Vec<HealthCheck> {
    vec![database(app).await, queue(app).await, agent(app).await]
}

fn foreign(system: &dyn Watched) -> HealthCheck {
    let told = match system.health() {
        port::Health::Up => Ok(format!("asked {} times", system.counts().asked)),
        port::Health::Down { reason } => Err(reason),
    };
    check(system.name(), told)
}

fn check(name: &str, outcome: Result<String, String>) -> HealthCheck {
    let name = name.to_owned();
    match outcome {
        Ok(detail) => HealthCheck { name, status: "healthy".into(), detail },
        Err(detail) => HealthCheck { name, status: "unhealthy".into(), detail },
    }
}

async fn database(app: &App) -> HealthCheck {
    let asked = async { store::event::last(&mut app.db.read().await?).await };
    let told = asked.await.map(|seq| format!("{}, {seq} events", app.db.engine_name()));
    check("database", told.map_err(|_| "does not answer".to_owned()))
}

async fn queue(app: &App) -> HealthCheck {
    let asked = async { work::depth(&mut app.db.read().await?).await };
    let told = asked
        .await
        .map(|(depth, failing)| format!("{depth} keys wait, {failing} failed last time"));
    check("work queue", told.map_err(|_: store::Error| "can't be read".to_owned()))
}

async fn agent(app: &App) -> HealthCheck {
    let asked = async {
        lease::is_held(&mut app.db.read().await?, engine::local_agent::LEASE, app.db.now()).await
    };
    let told = match asked.await {
        Ok(true) => Ok(format!("serves this machine, runtime {}", app.settings.runtime)),
        Ok(false) => Ok("no agent serves this machine".to_owned()),
        Err(_) => Err("can't be asked".to_owned()),
    };
    check("agent", told)
}
