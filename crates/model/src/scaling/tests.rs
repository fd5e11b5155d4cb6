//! Autoscaling by example, by properties, and over a simulated day.

mod day;
mod examples;
mod files;
mod properties;

use std::time::Duration;

use super::*;
use crate::cluster::Status;
use crate::{ClusterId, Time, Xid};

const NOON: Time = Time(1_000_000_000_000_000);

fn minutes(n: u64) -> Duration {
    Duration::from_mins(n)
}

fn cpus(n: i64) -> Resources {
    Resources::from([("cpu", n)])
}

/// A pool of clusters with 8 cpu that only serves pending workloads.
fn plain() -> Pool {
    Pool {
        name: "east".into(),
        hosts: Vec::new(),
        template: Template {
            provider: Provider::Local,
            cloud_provider: "local".into(),
            region: "east".into(),
            labels: BTreeMap::new(),
            capacity: cpus(8),
            nodes: Vec::new(),
            is_foreign: false,
            settings: Settings::None,
        },
        at_least: 0,
        at_most: 50,
        limit: Resources::default(),
        slack: Resources::default(),
        largest: Vec::new(),
        pace: Pace::default(),
        dry_run: false,
    }
}

fn cluster_id(n: u32) -> ClusterId {
    ClusterId(Xid::new(n, [0; 5], 0))
}

fn cluster(n: u32, status: Status, used: i64) -> ObservedCluster {
    ObservedCluster {
        id: cluster_id(n),
        name: format!("east-{n}"),
        status,
        nodes: vec![ObservedNode { total: cpus(8), used: cpus(used), reserved: cpus(0) }],
        empty_since: (used == 0).then_some(NOON),
        since: NOON,
    }
}

fn pending(cpu: i64, count: usize, since: Time) -> PendingWorkloads {
    PendingWorkloads { request: cpus(cpu), count, since }
}

fn seen(clusters: Vec<ObservedCluster>) -> Observed {
    Observed { clusters, ..Observed::default() }
}
