//! Around every request: an id, a line in the log, a measurement, a time limit, and the writing-out
//! of problems.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::entropy;
use model::Xid;
use port::Health;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use store::work;

use crate::body::Deadline;
use crate::{App, Problem, fleet};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest value of one header.
const HEADER_LIMIT: usize = 8 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    route: String,
    status: u16,
}

/// The API's series, and the whole registry.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    queue: Gauge,
    failing: Gauge,
    instances: Family<Census, Gauge>,
    pool_clusters: Family<PoolCensus, Gauge>,
    foreign_up: Family<System, Gauge>,
    foreign_asked: Family<System, Gauge>,
    foreign_failed: Family<System, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Census {
    kind: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolCensus {
    pool: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct System {
    system: String,
}

impl Metrics {
    pub(crate) fn new(engine: &engine::Metrics) -> Self {
        let mut registry = Registry::with_prefix("paddock");
        engine.register(&mut registry);
        let requests = Family::<Labels, Counter>::default();
        let seconds = Histogram::new(exponential_buckets(0.000_25, 4.0, 10));
        let (queue, failing) = (Gauge::default(), Gauge::default());
        registry.register("http_requests", "Requests by route and status", requests.clone());
        registry.register("http_seconds", "How long requests took", seconds.clone());
        registry.register("work_queue", "Keys in the work queue", queue.clone());
        registry.register("work_failing", "Keys whose last step failed", failing.clone());
        let instances = Family::<Census, Gauge>::default();
        registry.register("instances", "Instances by kind and status", instances.clone());
        let pool_clusters = Family::<PoolCensus, Gauge>::default();
        let help = "Clusters by the pool that made them and status";
        registry.register("pool_clusters", help, pool_clusters.clone());
        let mut of_foreign = |name: &str, help: &str| {
            let family = Family::<System, Gauge>::default();
            registry.register(name, help, family.clone());
            family
        };
        let foreign_up = of_foreign("foreign_up", "Whether a foreign system answered last time");
        let foreign_asked = of_foreign("foreign_asked", "How often a foreign system was asked");
        let foreign_failed =
            of_foreign("foreign_failed", "How often it was down, slow or confused");
        Self {
            registry,
            requests,
            seconds,
            queue,
            failing,
            instances,
            pool_clusters,
            foreign_up,
            foreign_asked,
            foreign_failed,
        }
    }

    fn record(&self, method: &'static str, route: String, status: u16, took: Duration) {
        self.requests.get_or_create(&Labels { method, route, status }).inc();
        self.seconds.observe(took.as_secs_f64());
    }
}

/// All series, as Prometheus reads them.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let (queue, failing) = work::depth(&mut app.db.read().await?).await?;
    app.metrics.queue.set(queue);
    app.metrics.failing.set(failing);
    count_instances(&app).await?;
    count_pool_clusters(&app).await?;
    watch_foreign(&app);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &app.metrics.registry).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The metrics can't be written.")
    })?;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(format))], text).into_response())
}

async fn count_instances(app: &App) -> Result<(), Problem> {
    let census = store::instance::census(&mut app.db.read().await?).await?;
    // What there is none of any more is not shown.
    app.metrics.instances.clear();
    for (kind, status, count) in census {
        let labels = Census { kind, status: status.as_str() };
        app.metrics.instances.get_or_create(&labels).set(count);
    }
    Ok(())
}

async fn count_pool_clusters(app: &App) -> Result<(), Problem> {
    let counts = store::pool::counts(&mut app.db.read().await?).await?;
    app.metrics.pool_clusters.clear();
    for (pool, status, count) in counts {
        let labels = PoolCensus { pool, status: status.as_str() };
        app.metrics.pool_clusters.get_or_create(&labels).set(count);
    }
    Ok(())
}

fn watch_foreign(app: &App) {
    for system in &app.foreign {
        let labels = System { system: system.name().to_owned() };
        let (counts, is_up) = (system.counts(), system.health() == Health::Up);
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        app.metrics.foreign_up.get_or_create(&labels).set(i64::from(is_up));
        app.metrics.foreign_asked.get_or_create(&labels).set(number(counts.asked));
        app.metrics.foreign_failed.get_or_create(&labels).set(number(counts.failed));
    }
}

/// The middleware.
pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = base::monotonic();
    let limit = app.settings.request_timeout;
    request.extensions_mut().insert(Deadline(started + limit));
    let id = format!("{:016x}", entropy::noise(app.db.entropy()));
    let method = known(request.method());
    let path = request.uri().path().to_owned();
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or_else(|| "none".to_owned(), |matched| matched.as_str().to_owned());
    let mut response = match overlong(&request) {
        Some(refusal) => refusal,
        None => {
            let response = tokio::time::timeout(limit, next.run(request)).await;
            response.unwrap_or_else(|_| late(limit))
        }
    };
    match fleet::family(&app, &path) {
        Some(kind) => {
            let operation = app.db.id::<Xid>().to_string();
            fleet::wire::finish(&mut response, &kind, &operation);
        }
        None => write_problem(&mut response, &id),
    }
    let took = started.elapsed();
    // Not the query: it may hold an invite's code.
    tracing::info!(
        request.id = id,
        method,
        path,
        status = response.status().as_u16(),
        took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        "{method} {path}"
    );
    app.metrics.record(method, route, response.status().as_u16(), took);
    let id = HeaderValue::from_str(&id).expect("hexadecimal digits");
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// The method, if it is one of HTTP's own: callers must not be able to make up series.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

/// Refuses a header that nobody needs to be so long.
fn overlong(request: &Request) -> Option<Response> {
    let (name, _) = request.headers().iter().find(|(_, value)| value.len() > HEADER_LIMIT)?;
    let detail = format!("The header {name} is longer than {HEADER_LIMIT} bytes.");
    Some(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail).into_response())
}

fn late(limit: Duration) -> Response {
    let detail = format!("It took longer than {} s; it may still be done.", limit.as_secs());
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
}

fn write_problem(response: &mut Response, id: &str) {
    let Some(problem) = response.extensions_mut().remove::<Problem>().or_else(|| unnamed(response))
    else {
        return;
    };
    let body = serde_json::to_vec(&problem.document(id)).expect("a problem is plain data");
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = body.into();
}

/// What the framework itself refuses.
fn unnamed(response: &Response) -> Option<Problem> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let status = response.status();
    if status.as_u16() < 400 || kind.is_some_and(|kind| kind.as_bytes().ends_with(b"json")) {
        return None;
    }
    let detail = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            "This path does not take this method; /docs lists what it takes."
        }
        StatusCode::BAD_REQUEST => "The request's path can't be read.",
        _ => status.canonical_reason().unwrap_or("It can't be done."),
    };
    Some(Problem::new(status, detail))
}

/// What a panic in a handler becomes.
pub(crate) fn panicked(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "Something is wrong on our side; it has been logged.",
    )
    .into_response()
}
