//! Metrics of one instance: from where they are kept, or what Paddock knows itself.

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
use crate::metrics_backend::{Range, Series, Wanted};

/// The labels that users see.
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
/// Minutes that a range may be long, and seconds that its values may be apart.
const MAX_DURATION_MINUTES: i64 = 4320;
const MAX_INTERVAL_SECS: i64 = 10_800;
/// How many values of one series may be asked for.
const MAX_VALUES: i64 = 11_000;
/// How many names may be asked for at once.
const MAX_FILTERS: usize = 100;

/// Which series are wanted.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct Filters {
    /// Names of series, each in a parameter of its own; all when there is none.
    filters: Option<Vec<String>>,
}

/// Over which time.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct Over {
    /// How many minutes back from now.
    #[param(minimum = 1, maximum = 4320)]
    duration: i64,
    /// How many seconds the values are apart.
    #[param(minimum = 1, maximum = 10800)]
    interval: i64,
}

/// The values of several series now.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstantList {
    /// Always `MetricsInstantQueryList`.
    kind: &'static str,
    /// The instance's id.
    id: String,
    /// The series.
    items: Vec<Instant>,
}

/// The value of a series now.
#[derive(Serialize, ToSchema)]
#[schema(as = MetricNow)]
pub(crate) struct Instant {
    /// Its labels, its name among them.
    metric: BTreeMap<String, String>,
    /// When it was so, in milliseconds since 1970.
    timestamp: i64,
    /// How much.
    value: f64,
}

/// The values of several series over time.
#[derive(Serialize, ToSchema)]
pub(crate) struct RangeList {
    /// Always `MetricsRangeQueryList`.
    kind: &'static str,
    /// The instance's id.
    id: String,
    /// The series.
    items: Vec<Values>,
}

/// The values of a series over time.
#[derive(Serialize, ToSchema)]
#[schema(as = MetricOverTime)]
pub(crate) struct Values {
    /// Its labels, its name among them.
    metric: BTreeMap<String, String>,
    /// Oldest first.
    values: Vec<ValueAt>,
}

/// A value.
#[derive(Serialize, ToSchema)]
#[schema(as = MetricValue)]
pub(crate) struct ValueAt {
    /// When it was so, in milliseconds since 1970.
    timestamp: i64,
    /// How much.
    value: f64,
}

/// The values of an instance's series now.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}/{id}/metrics/query", tag = "metrics",
    params(InstancePath, Filters),
    responses((status = 200, body = InstantList, description = "The series"), Error))]
pub(crate) async fn metrics_query(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<Answer<InstantList>, Error> {
    let of = visible(&app, &tenant, &path).await?;
    let found = series(&app, &of, names(&params)?, None).await?;
    let items = found.into_iter().filter_map(|one| {
        let (at, value) = one.values.last().copied()?;
        Some(Instant { metric: one.labels, timestamp: at.0 / 1000, value })
    });
    let id = of.id.to_string();
    Ok(Answer(InstantList { kind: "MetricsInstantQueryList", id, items: items.collect() }))
}

/// The values of an instance's series over time.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}/{id}/metrics/query_range", tag = "metrics",
    params(InstancePath, Over, Filters),
    responses((status = 200, body = RangeList, description = "The series"), Error))]
pub(crate) async fn metrics_query_range(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<Answer<RangeList>, Error> {
    let of = visible(&app, &tenant, &path).await?;
    let range = range(&app, &params)?;
    let found = series(&app, &of, names(&params)?, Some(range)).await?;
    let items = found.into_iter().map(|one| {
        let values = one.values.iter();
        let values = values.map(|(at, value)| ValueAt { timestamp: at.0 / 1000, value: *value });
        Values { metric: one.labels, values: values.collect() }
    });
    let id = of.id.to_string();
    Ok(Answer(RangeList { kind: "MetricsRangeQueryList", id, items: items.collect() }))
}

/// All series of an instance as Prometheus reads them.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}/{id}/metrics/federate", tag = "metrics",
    params(InstancePath),
    responses((status = 200, body = String, content_type = "text/plain", description = "All of them"),
        Error))]
pub(crate) async fn metrics_federate(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
) -> Result<Response, Error> {
    let of = visible(&app, &tenant, &path).await?;
    let found = series(&app, &of, Vec::new(), None).await?;
    let format = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, format)], text::exposition(&found)).into_response())
}

/// The instance, if the caller may see it and its kind has metrics.
async fn visible(app: &App, tenant: &Tenant, path: &InstancePath) -> Result<Instance, Error> {
    tenant.must_offer(tenant.kind.offers.metrics, "metrics")?;
    find(app, tenant.caller.own(), &tenant.kind, path).await
}

/// Names that are wanted. What is no name matches nothing, and nothing else either.
fn names(params: &Params) -> Result<Vec<String>, Error> {
    let all: Vec<String> = params.all("filters").map(str::to_owned).collect();
    if all.len() > MAX_FILTERS {
        return Err(Error::new(21, format!("At most {MAX_FILTERS} filters are taken.")));
    }
    Ok(all)
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !text.is_empty() && text.chars().all(allowed) && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn range(app: &App, params: &Params) -> Result<Range, Error> {
    let minutes = number(params, "duration", MAX_DURATION_MINUTES)?;
    let secs = number(params, "interval", MAX_INTERVAL_SECS)?;
    if minutes * 60 / secs > MAX_VALUES {
        let reason = format!("interval: too short; at most {MAX_VALUES} values are given.");
        return Err(Error::new(21, reason));
    }
    let end = app.db.now();
    let start = end - Duration::from_secs((minutes * 60).unsigned_abs());
    Ok(Range { start, end, step: Duration::from_secs(secs.unsigned_abs()) })
}

fn number(params: &Params, name: &str, most: i64) -> Result<i64, Error> {
    let number = params.get(name).and_then(|text| text.parse().ok());
    number
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| Error::new(21, format!("{name}: must be a whole number from 1 to {most}.")))
}

/// The series of an instance, with the labels that users see.
async fn series(
    app: &App,
    of: &Instance,
    names: Vec<String>,
    range: Option<Range>,
) -> Result<Vec<Series>, Error> {
    let is_all = names.is_empty();
    let names: Vec<String> = names.into_iter().filter(|name| is_name(name)).collect();
    if names.is_empty() && !is_all {
        return Ok(Vec::new());
    }
    let Some(backend) = &app.settings.metrics.0 else {
        let known = own::series(app, of).await?;
        let is_wanted = |one: &Series| is_all || names.contains(&one.labels["__name__"]);
        return Ok(known.into_iter().filter(is_wanted).collect());
    };
    let wanted = Wanted { namespace: of.namespace(), names, range };
    let mut found = backend.series(&wanted).await.map_err(|why| {
        tracing::error!(why, instance = %of.id, "its metrics are not to be had");
        Error::new(9, "The metrics are not to be had right now; try again in a moment.")
    })?;
    for one in &mut found {
        one.labels.retain(|name, _| LABELS.contains(&name.as_str()));
        // JSON has no other numbers.
        one.values.retain(|(_, value)| value.is_finite());
    }
    Ok(found)
}
