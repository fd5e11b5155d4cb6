//! What can be asked of a cluster that is there: to be emptied, and to be tried again.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;

use wire::cluster::Cluster;

use super::changeable;
use crate::Problem;
use crate::caller::Call;

/// Has a cluster take nothing new, and what is on it move elsewhere, as far as there is room.
///
/// Follow its `status_reason`: it says what is still there, and when it is drained.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/drain", tag = "clusters",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Cluster, description = "It is being drained"), Problem))]
pub(crate) async fn cluster_drain(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let drained = store::cluster::drain(&mut tx, &found).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(drained.into())))
}

/// Has a cluster take what is new again. What has moved stays where it is.
#[utoipa::path(delete, path = "/api/v1/clusters/{id}/drain", tag = "clusters",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Cluster, description = "It takes what is new"), Problem))]
pub(crate) async fn cluster_undrain(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Cluster>, Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let back = store::cluster::undrain(&mut tx, &found).await?;
    tx.commit().await?;
    Ok(Answer(back.into()))
}

/// Has a cluster that failed be tried again, from the beginning; what is there is found.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/retry", tag = "clusters",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Cluster, description = "It is tried again"), Problem))]
pub(crate) async fn cluster_retry(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let again = store::cluster::retry(&mut tx, &found).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(again.into())))
}

/// Cancels what the provider of a cluster is doing to create it.
///
/// The cluster is `failed` once that has stopped, and can be retried or deleted.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/cancel", tag = "clusters",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Cluster, description = "The operation is being cancelled"), Problem))]
pub(crate) async fn cluster_cancel(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let cancelled = store::cluster::cancel(&mut tx, &found).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(cancelled.into())))
}
