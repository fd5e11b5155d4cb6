//! Backend for the metrics of instances: a system like Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::Time;

/// Query for the series of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesQuery {
    /// Namespace of the instance.
    pub namespace: String,
    /// Metric names; all if empty.
    pub names: Vec<String>,
    /// Time range; only the current values if `None`.
    pub range: Option<Range>,
}

/// A time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Start time.
    pub start: Time,
    /// End time.
    pub end: Time,
    /// Interval between values.
    pub step: Duration,
}

/// A time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Labels; `__name__` holds the metric name.
    pub labels: BTreeMap<String, String>,
    /// Values with their times.
    pub values: Vec<(Time, f64)>,
}

/// A metrics backend.
pub trait Backend: Send + Sync {
    /// Returns the requested series, or the reason why they are not available.
    fn series<'a>(&'a self, wanted: &'a SeriesQuery) -> BoxFuture<'a, Result<Vec<Series>, String>>;
}

/// The metrics backend, if one is configured.
#[derive(Clone, Default)]
pub struct MetricsBackend(pub Option<Arc<dyn Backend>>);

impl fmt::Debug for MetricsBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "MetricsBackend(on)" } else { "MetricsBackend(off)" })
    }
}
