//! What Paddock itself knows of an instance, as series: of now, and nothing that it does not know.

use std::collections::BTreeMap;

use model::Time;
use model::instance::{Instance, Status};
use store::{Scope, deployment};

use crate::App;
use crate::fleet::Error;
use crate::metrics_backend::Series;

/// What is known.
pub(super) async fn series(app: &App, of: &Instance) -> Result<Vec<Series>, Error> {
    let now = app.db.now();
    let held = match of.deployment_id {
        Some(id) => deployment::get(&mut app.db.read().await?, Scope::All, id).await.ok(),
        None => None,
    };
    let flag = |is: bool| f64::from(u8::from(is));
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let mut all = vec![
        ("paddock_instance_ready", flag(of.status == Status::Ready)),
        ("paddock_instance_failed", flag(of.status == Status::Failed)),
        ("paddock_instance_status_seconds", now.since(of.status_since).as_secs_f64()),
        ("paddock_instance_age_seconds", now.since(of.created_at).as_secs_f64()),
        ("paddock_instance_endpoints", count(of.detail.endpoints.len())),
        ("paddock_instance_routes", count(of.detail.routes.len())),
    ];
    if let Some(held) = held {
        let is_running = held.status == model::deployment::Status::Running;
        all.push(("paddock_instance_running", flag(is_running)));
    }
    Ok(all.into_iter().map(|(name, value)| one(name, value, now)).collect())
}

fn one(name: &str, value: f64, now: Time) -> Series {
    let labels = BTreeMap::from([("__name__".to_owned(), name.to_owned())]);
    Series { labels, values: vec![(now, value)] }
}
