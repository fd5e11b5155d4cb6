//! Cluster commands: drain, undrain, retry and cancel.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;

use wire::cluster::Cluster;

use super::changeable;
use crate::Problem;
use crate::caller::Call;

/// Drains a cluster: it accepts no new workloads, and its workloads move to other clusters with
/// free capacity.
///
/// `status_reason` reports the remaining workloads and the end of the drain.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/drain", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 202, body = Cluster, description = "Draining"), Problem))]
pub(crate) async fn cluster_drain(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let drained = store::cluster::drain(&mut tx, &found).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(drained.into())))
}

/// Ends the drain of a cluster: it accepts new workloads again.
///
/// Workloads that have moved stay where they are.
#[utoipa::path(delete, path = "/api/v1/clusters/{id}/drain", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 200, body = Cluster, description = "Accepts new workloads"), Problem))]
pub(crate) async fn cluster_undrain(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Cluster>, Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let cluster = store::cluster::undrain(&mut tx, &found).await?;
    tx.commit().await?;
    Ok(Answer(cluster.into()))
}

/// Retries a failed cluster from the beginning, reusing the infrastructure that exists.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/retry", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 202, body = Cluster, description = "Retrying"), Problem))]
pub(crate) async fn cluster_retry(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let retried = store::cluster::retry(&mut tx, &found).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(retried.into())))
}

/// Cancels the running provider operation that creates a cluster.
///
/// The cluster is `failed` once the operation has stopped, and can be retried or deleted.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/cancel", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 202, body = Cluster, description = "Cancelling"), Problem))]
pub(crate) async fn cluster_cancel(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let cancelled = store::cluster::cancel(&mut tx, &found).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(cancelled.into())))
}
