//! Metrics of the workers.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Run {
    pub(crate) worker: String,
    pub(crate) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Worker {
    pub(crate) worker: String,
}

/// Metrics of the engine.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub(crate) runs: Family<Run, Counter>,
    pub(crate) seconds: Family<Worker, Histogram>,
    pub(crate) late_seconds: Histogram,
    pub(crate) running: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram = || Histogram::new(exponential_buckets(0.000_5, 4.0, 10));
        Self {
            runs: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            late_seconds: histogram(),
            running: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Registers the metrics under `paddock_work_…`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("work");
        registry.register("runs", "Reconciliations by worker and outcome", self.runs.clone());
        registry.register("seconds", "Duration of reconciliations", self.seconds.clone());
        let late = "Delay between the due time and the start of reconciliations";
        registry.register("late_seconds", late, self.late_seconds.clone());
        registry.register("running", "Running reconciliations", self.running.clone());
    }
}
