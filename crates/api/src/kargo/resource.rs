//! Manual reservation of a cluster's resources: check, reserve, release.

use axum::Json as Answer;
use axum::extract::Path;
use model::Resources;
use serde::Deserialize;
use utoipa::ToSchema;
use wire::amount::{Amount, Availability};

use super::cluster::{ClusterResponse, find};
use crate::Problem;
use crate::amount;
use crate::body::Json;
use crate::caller::Call;

/// Amounts by resource type.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoResource)]
pub(crate) struct ResourceRequest {
    /// Amounts by resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resource: Resources,
}

/// Checks whether a cluster has the requested resources free.
#[utoipa::path(patch, path = "/cluster/{id}/resource/", tag = "resource", request_body = ResourceRequest,
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 200, body = Availability, description = "Result of the check"), Problem))]
pub(crate) async fn resource_check(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<ResourceRequest>,
) -> Result<Answer<Availability>, Problem> {
    amount::request("resource", &request.resource)?;
    let found = find(&mut app.db.read().await?, &caller, &text).await?;
    Ok(Answer(Availability::check(&request.resource, &found.free())))
}

/// Reserves resources: all of them or none.
#[utoipa::path(post, path = "/cluster/{id}/resource/", tag = "resource", request_body = ResourceRequest,
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 200, body = ClusterResponse, description = "Reserved"), Problem))]
pub(crate) async fn resource_take(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<ResourceRequest>,
) -> Result<Answer<ClusterResponse>, Problem> {
    amount::request("resource", &request.resource)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = find(&mut tx, &caller, &text).await?;
    caller.may_change(&found)?;
    let reserved = store::cluster::reserve(&mut tx, found.id, &request.resource).await?;
    tx.commit().await?;
    Ok(Answer(reserved.into()))
}

/// Releases manually reserved resources: all of them or none.
#[utoipa::path(delete, path = "/cluster/{id}/resource/", tag = "resource", request_body = ResourceRequest,
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 200, body = ClusterResponse, description = "Released"), Problem))]
pub(crate) async fn resource_give_back(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<ResourceRequest>,
) -> Result<Answer<ClusterResponse>, Problem> {
    amount::request("resource", &request.resource)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = find(&mut tx, &caller, &text).await?;
    caller.may_change(&found)?;
    let released = store::cluster::release(&mut tx, found.id, &request.resource).await?;
    tx.commit().await?;
    Ok(Answer(released.into()))
}
