//! Metrics of an instance: from the metrics backend, or those that Paddock itself has.

mod own;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use model::instance::Instance;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::Error;
use super::instance::{InstancePath, find};
use super::tenant::Tenant;
use super::wire::Params;
use crate::App;
use crate::caller::Call;
use crate::metrics_backend::{Range, Series, SeriesQuery};

/// Labels shown to users.
const LABELS: [&str; 12] = [
    "__name__",
    "strimzi_io_cluster",
    "topic",
    "persistentvolumeclaim",
    "statefulset_kubernetes_io_pod_name",
    "exported_service",
    "exported_pod",
    "route",
    "broker_id",
    "quota_type",
    "partition_id",
    "topic_name",
];
/// Maximum range in minutes and maximum interval in seconds.
const MAX_DURATION_MINUTES: i64 = 4320;
const MAX_INTERVAL_SECS: i64 = 10_800;
/// Maximum number of values per series.
const MAX_VALUES: i64 = 11_000;
/// Maximum number of names per request.
const MAX_FILTERS: usize = 100;

/// Filter for series.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct Filters {
    /// Metric names, one per parameter; all if omitted.
    filters: Option<Vec<String>>,
}

/// Time range.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct TimeRange {
    /// Length of the range in minutes, until now.
    #[param(minimum = 1, maximum = 4320)]
    duration: i64,
    /// Interval between values in seconds.
    #[param(minimum = 1, maximum = 10800)]
    interval: i64,
}

/// Current values of several series.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstantList {
    /// Always `MetricsInstantQueryList`.
    kind: &'static str,
    /// Instance ID.
    id: String,
    /// Series.
    items: Vec<Instant>,
}

/// Current value of a series.
#[derive(Serialize, ToSchema)]
#[schema(as = MetricNow)]
pub(crate) struct Instant {
    /// Labels, including the metric name.
    metric: BTreeMap<String, String>,
    /// Unix time in milliseconds.
    timestamp: i64,
    /// Value.
    value: f64,
}

/// Values of several series over time.
#[derive(Serialize, ToSchema)]
pub(crate) struct RangeList {
    /// Always `MetricsRangeQueryList`.
    kind: &'static str,
    /// Instance ID.
    id: String,
    /// Series.
    items: Vec<Values>,
}

/// Values of a series over time.
#[derive(Serialize, ToSchema)]
#[schema(as = MetricOverTime)]
pub(crate) struct Values {
    /// Labels, including the metric name.
    metric: BTreeMap<String, String>,
    /// Values, oldest first.
    values: Vec<ValueAt>,
}

/// A value with its time.
#[derive(Serialize, ToSchema)]
#[schema(as = MetricValue)]
pub(crate) struct ValueAt {
    /// Unix time in milliseconds.
    timestamp: i64,
    /// Value.
    value: f64,
}

/// Returns the current values of an instance's metrics.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}/{id}/metrics/query", tag = "metrics",
    params(InstancePath, Filters),
    responses((status = 200, body = InstantList, description = "Current values"), Error))]
pub(crate) async fn metrics_query(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<Answer<InstantList>, Error> {
    let instance = visible(&app, &tenant, &path).await?;
    let found = series(&app, &instance, names(&params)?, None).await?;
    let items = found.into_iter().filter_map(|series| {
        let (at, value) = series.values.last().copied()?;
        Some(Instant { metric: series.labels, timestamp: at.0 / 1000, value })
    });
    let id = instance.id.to_string();
    Ok(Answer(InstantList { kind: "MetricsInstantQueryList", id, items: items.collect() }))
}

/// Returns the values of an instance's metrics over time.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}/{id}/metrics/query_range", tag = "metrics",
    params(InstancePath, TimeRange, Filters),
    responses((status = 200, body = RangeList, description = "Values over time"), Error))]
pub(crate) async fn metrics_query_range(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<Answer<RangeList>, Error> {
    let instance = visible(&app, &tenant, &path).await?;
    let range = range(&app, &params)?;
    let found = series(&app, &instance, names(&params)?, Some(range)).await?;
    let items = found.into_iter().map(|series| {
        let values = series.values.iter();
        let values = values.map(|(at, value)| ValueAt { timestamp: at.0 / 1000, value: *value });
        Values { metric: series.labels, values: values.collect() }
    });
    let id = instance.id.to_string();
    Ok(Answer(RangeList { kind: "MetricsRangeQueryList", id, items: items.collect() }))
}

/// Returns all metrics of an instance in the Prometheus text format.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}/{id}/metrics/federate", tag = "metrics",
    params(InstancePath),
    responses((status = 200, body = String, content_type = "text/plain", description = "Metrics in the Prometheus text format"),
        Error))]
pub(crate) async fn metrics_federate(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
) -> Result<Response, Error> {
    let instance = visible(&app, &tenant, &path).await?;
    let found = series(&app, &instance, Vec::new(), None).await?;
    let format = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, format)], text::exposition(&found)).into_response())
}

/// Returns the instance, if the caller may see it and its kind has metrics.
async fn visible(app: &App, tenant: &Tenant, path: &InstancePath) -> Result<Instance, Error> {
    tenant.must_offer(tenant.kind.offers.metrics, "metrics")?;
    find(app, tenant.caller.own(), &tenant.kind, path).await
}

/// Returns the requested metric names. Invalid names match nothing.
fn names(params: &Params) -> Result<Vec<String>, Error> {
    let names: Vec<String> = params.all("filters").map(str::to_owned).collect();
    if names.len() > MAX_FILTERS {
        return Err(Error::new(21, format!("At most {MAX_FILTERS} filters are allowed.")));
    }
    Ok(names)
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !text.is_empty() && text.chars().all(allowed) && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn range(app: &App, params: &Params) -> Result<Range, Error> {
    let minutes = number(params, "duration", MAX_DURATION_MINUTES)?;
    let secs = number(params, "interval", MAX_INTERVAL_SECS)?;
    if minutes * 60 / secs > MAX_VALUES {
        let reason = format!("interval: too short; at most {MAX_VALUES} values are returned.");
        return Err(Error::new(21, reason));
    }
    let end = app.db.now();
    let start = end - Duration::from_secs((minutes * 60).unsigned_abs());
    Ok(Range { start, end, step: Duration::from_secs(secs.unsigned_abs()) })
}

fn number(params: &Params, name: &str, max: i64) -> Result<i64, Error> {
    let number = params.get(name).and_then(|text| text.parse().ok());
    number
        .filter(|number| (1..=max).contains(number))
        .ok_or_else(|| Error::new(21, format!("{name}: must be a whole number from 1 to {max}.")))
}

/// Returns the series of an instance, with the labels shown to users.
async fn series(
    app: &App,
    instance: &Instance,
    names: Vec<String>,
    range: Option<Range>,
) -> Result<Vec<Series>, Error> {
    let is_all = names.is_empty();
    let names: Vec<String> = names.into_iter().filter(|name| is_name(name)).collect();
    if names.is_empty() && !is_all {
        return Ok(Vec::new());
    }
    let Some(backend) = &app.settings.metrics.0 else {
        let series = own::series(app, instance).await?;
        let is_requested = |series: &Series| is_all || names.contains(&series.labels["__name__"]);
        return Ok(series.into_iter().filter(is_requested).collect());
    };
    let request = SeriesQuery { namespace: instance.namespace(), names, range };
    let mut found = backend.series(&request).await.map_err(|why| {
        tracing::error!(why, instance = %instance.id, "reading instance metrics failed");
        Error::new(9, "The metrics are temporarily unavailable; try again.")
    })?;
    for series in &mut found {
        series.labels.retain(|name, _| LABELS.contains(&name.as_str()));
        // JSON has no other numbers.
        series.values.retain(|(_, value)| value.is_finite());
    }
    Ok(found)
}
