//! The queue of pending deployments.

use axum::Json as Answer;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::deployment::Queue;

use super::deployment::responses;
use crate::Problem;
use crate::caller::Call;
use crate::page::{Query, id_field, number};

/// Filter for the queue.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct QueueFilter {
    /// Filters by cluster: deployments that are pinned to it.
    cluster_id: Option<String>,
    /// Maximum number of items, from 1 to 1000; defaults to 100.
    #[param(value_type = Option<i64>)]
    limit: Option<String>,
}

/// Lists the organization's pending deployments in queue order.
#[utoipa::path(get, path = "/api/v1/queue", tag = "deployments", params(QueueFilter),
    responses((status = 200, body = Queue, description = "Pending deployments"), Problem))]
pub(crate) async fn queue_list(
    Call(app, caller): Call,
    Query(filter): Query<QueueFilter>,
) -> Result<Answer<Queue>, Problem> {
    let limit = number("limit", filter.limit.as_deref(), 100, 1, 1000)?;
    let cluster = filter.cluster_id.map(|text| id_field("cluster_id", &text)).transpose()?;
    let mut read = app.db.read().await?;
    let found = store::deployment::queue(&mut read, caller.scope(), cluster, limit).await?;
    Ok(Answer(Queue { items: responses(&app, &caller, found).await }))
}
