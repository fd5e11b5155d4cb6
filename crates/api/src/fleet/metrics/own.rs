//! Metrics that Paddock itself has about an instance: current values only.

use std::collections::BTreeMap;

use model::Time;
use model::instance::{Instance, Status};
use store::{Scope, deployment};

use crate::App;
use crate::fleet::Error;
use crate::metrics_backend::Series;

/// Returns the metrics.
pub(super) async fn series(app: &App, instance: &Instance) -> Result<Vec<Series>, Error> {
    let now = app.db.now();
    let deployment_now = match instance.deployment_id {
        Some(id) => deployment::get(&mut app.db.read().await?, Scope::All, id).await.ok(),
        None => None,
    };
    let flag = |is: bool| f64::from(u8::from(is));
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let mut values = vec![
        ("paddock_instance_ready", flag(instance.status == Status::Ready)),
        ("paddock_instance_failed", flag(instance.status == Status::Failed)),
        ("paddock_instance_status_seconds", now.since(instance.status_since).as_secs_f64()),
        ("paddock_instance_age_seconds", now.since(instance.created_at).as_secs_f64()),
        ("paddock_instance_endpoints", count(instance.detail.endpoints.len())),
        ("paddock_instance_routes", count(instance.detail.routes.len())),
    ];
    if let Some(deployment_now) = deployment_now {
        let is_running = deployment_now.status == model::deployment::Status::Running;
        values.push(("paddock_instance_running", flag(is_running)));
    }
    Ok(values.into_iter().map(|(name, value)| series_of(name, value, now)).collect())
}

fn series_of(name: &str, value: f64, now: Time) -> Series {
    let labels = BTreeMap::from([("__name__".to_owned(), name.to_owned())]);
    Series { labels, values: vec![(now, value)] }
}
