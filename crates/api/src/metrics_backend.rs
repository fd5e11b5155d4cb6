//! Where the metrics of instances are kept, if somewhere: a system like Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::Time;

/// Which series are wanted: those of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The instance's namespace.
    pub namespace: String,
    /// Their names; all when there is none.
    pub names: Vec<String>,
    /// From when to when, and how far apart; none means now.
    pub range: Option<Range>,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// From.
    pub start: Time,
    /// To.
    pub end: Time,
    /// How far apart the values are.
    pub step: Duration,
}

/// The values of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its labels; its name is `__name__`.
    pub labels: BTreeMap<String, String>,
    /// When it was how much.
    pub values: Vec<(Time, f64)>,
}

/// A system that keeps metrics.
pub trait Backend: Send + Sync {
    /// The series that are wanted, or why they are not to be had.
    fn series<'a>(&'a self, wanted: &'a Wanted) -> BoxFuture<'a, Result<Vec<Series>, String>>;
}

/// The system that keeps metrics, if there is one.
#[derive(Clone, Default)]
pub struct MetricsBackend(pub Option<Arc<dyn Backend>>);

impl fmt::Debug for MetricsBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "MetricsBackend(on)" } else { "MetricsBackend(off)" })
    }
}
