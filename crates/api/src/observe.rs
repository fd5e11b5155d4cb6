//! Middleware around every request: request ID, log line, metrics, time limit, and rendering of
//! problem documents.

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

use crate::body::{Deadline, timeout};
use crate::{App, Problem, fleet};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of a header value.
const HEADER_LIMIT: usize = 8 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    route: String,
    status: u16,
}

/// API metrics and the registry of all metrics.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    queue: Gauge,
    failing: Gauge,
    instances: Family<Census, Gauge>,
    pool_clusters: Family<PoolCensus, Gauge>,
    external_up: Family<System, Gauge>,
    external_requests: Family<System, Gauge>,
    external_failures: Family<System, Gauge>,
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
        registry.register("http_seconds", "Request duration", seconds.clone());
        registry.register("work_queue", "Keys in the work queue", queue.clone());
        registry.register("work_failing", "Keys whose last reconciliation failed", failing.clone());
        let instances = Family::<Census, Gauge>::default();
        registry.register("instances", "Instances by kind and status", instances.clone());
        let pool_clusters = Family::<PoolCensus, Gauge>::default();
        let help = "Clusters by pool and status";
        registry.register("pool_clusters", help, pool_clusters.clone());
        let mut external_gauge = |name: &str, help: &str| {
            let family = Family::<System, Gauge>::default();
            registry.register(name, help, family.clone());
            family
        };
        let external_up = external_gauge(
            "foreign_up",
            "Whether the last request to the external system succeeded",
        );
        let external_requests = external_gauge("foreign_asked", "Requests to the external system");
        let external_failures =
            external_gauge("foreign_failed", "Failed requests to the external system");
        Self {
            registry,
            requests,
            seconds,
            queue,
            failing,
            instances,
            pool_clusters,
            external_up,
            external_requests,
            external_failures,
        }
    }

    fn record(&self, method: &'static str, route: String, status: u16, took: Duration) {
        self.requests.get_or_create(&Labels { method, route, status }).inc();
        self.seconds.observe(took.as_secs_f64());
    }
}

/// Renders all metrics in the OpenMetrics format.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let (queue, failing) = work::depth(&mut app.db.read().await?).await?;
    app.metrics.queue.set(queue);
    app.metrics.failing.set(failing);
    count_instances(&app).await?;
    count_pool_clusters(&app).await?;
    update_external(&app);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &app.metrics.registry).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "Encoding the metrics failed.")
    })?;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(format))], text).into_response())
}

async fn count_instances(app: &App) -> Result<(), Problem> {
    let census = store::instance::count_by_status(&mut app.db.read().await?).await?;
    // Drop series whose count is zero now.
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

fn update_external(app: &App) {
    for system in &app.external_systems {
        let labels = System { system: system.name().to_owned() };
        let (counts, is_up) = (system.counts(), system.health() == Health::Up);
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        app.metrics.external_up.get_or_create(&labels).set(i64::from(is_up));
        app.metrics.external_requests.get_or_create(&labels).set(number(counts.calls));
        app.metrics.external_failures.get_or_create(&labels).set(number(counts.failures));
    }
}

/// Middleware that observes every request.
pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = base::monotonic();
    let limit = timeout(&request, app.settings.request_timeout);
    request.extensions_mut().insert(Deadline(started + limit));
    let id = format!("{:016x}", entropy::random_u64(app.db.entropy()));
    let method = method_label(request.method());
    let path = request.uri().path().to_owned();
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or_else(|| "none".to_owned(), |matched| matched.as_str().to_owned());
    let mut response = match reject_long_header(&request) {
        Some(refusal) => refusal,
        None => {
            let response = tokio::time::timeout(limit, next.run(request)).await;
            response.unwrap_or_else(|_| timed_out(limit))
        }
    };
    match fleet::kind_of_path(&app, &path) {
        Some(kind) => {
            let operation = app.db.id::<Xid>().to_string();
            fleet::wire::finish(&mut response, &kind, &operation);
        }
        None => write_problem(&mut response, &id),
    }
    let took = started.elapsed();
    // Without the query, which may contain an invite code.
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

/// Label of the HTTP method: arbitrary methods must not create new series.
fn method_label(method: &Method) -> &'static str {
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

/// Rejects a request with an overlong header.
fn reject_long_header(request: &Request) -> Option<Response> {
    let (name, _) = request.headers().iter().find(|(_, value)| value.len() > HEADER_LIMIT)?;
    let detail = format!("The header {name} is longer than {HEADER_LIMIT} bytes.");
    Some(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail).into_response())
}

fn timed_out(limit: Duration) -> Response {
    let detail =
        format!("The request timed out after {} s; it may still complete.", limit.as_secs());
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
}

fn write_problem(response: &mut Response, id: &str) {
    let Some(problem) =
        response.extensions_mut().remove::<Problem>().or_else(|| framework_problem(response))
    else {
        return;
    };
    let body = serde_json::to_vec(&problem.document(id)).expect("a problem is plain data");
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = body.into();
}

/// Problem for an error response of the framework itself.
fn framework_problem(response: &Response) -> Option<Problem> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let status = response.status();
    if status.as_u16() < 400 || kind.is_some_and(|kind| kind.as_bytes().ends_with(b"json")) {
        return None;
    }
    let detail = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            "Method not allowed for this path; see /docs for the API reference."
        }
        StatusCode::BAD_REQUEST => "The request path is malformed.",
        _ => status.canonical_reason().unwrap_or("The request failed."),
    };
    Some(Problem::new(status, detail))
}

/// Converts a panic in a handler into a response.
pub(crate) fn panicked(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    tracing::error!("request handler panicked");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "Internal error; details are in the server log.",
    )
    .into_response()
}
