//! The queue: what waits, first in line first.

use axum::Json as Answer;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::deployment::{Deployment, Queue};

use crate::Problem;
use crate::caller::Call;
use crate::page::{Query, id_field, number};

/// Which part of the queue is wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct QueueFilter {
    /// Only those that wait for this cluster alone.
    cluster_id: Option<String>,
    /// How many at most, from 1 to 1000; 100 when it is left out.
    #[param(value_type = Option<i64>)]
    limit: Option<String>,
}

/// Lists the organization's deployments that wait for room, first in line first.
#[utoipa::path(get, path = "/api/v1/queue", tag = "deployments", params(QueueFilter),
    responses((status = 200, body = Queue, description = "What waits"), Problem))]
pub(crate) async fn queue_list(
    Call(app, caller): Call,
    Query(filter): Query<QueueFilter>,
) -> Result<Answer<Queue>, Problem> {
    let limit = number("limit", filter.limit.as_deref(), 100, 1, 1000)?;
    let cluster = filter.cluster_id.map(|text| id_field("cluster_id", &text)).transpose()?;
    let mut read = app.db.read().await?;
    let found = store::deployment::queue(&mut read, caller.scope(), cluster, limit).await?;
    Ok(Answer(Queue { items: found.into_iter().map(Deployment::from).collect() }))
}
