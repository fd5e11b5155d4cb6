//! A cluster's resources by hand: check, take, give back.

use axum::Json as Answer;
use axum::extract::Path;
use model::Resources;
use serde::Deserialize;
use utoipa::ToSchema;
use wire::amount::{Amount, Availability};

use super::cluster::{Shown, find};
use crate::Problem;
use crate::amount;
use crate::body::Json;
use crate::caller::Call;

/// An amount of each resource type.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoResource)]
pub(crate) struct Wanted {
    /// How much of each resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resource: Resources,
}

/// Checks whether the cluster has the required resources free.
#[utoipa::path(patch, path = "/cluster/{id}/resource/", tag = "resource", request_body = Wanted,
    params(("id" = String, Path, description = "The cluster's id")),
    responses((status = 200, body = Availability, description = "Whether it fits"), Problem))]
pub(crate) async fn resource_check(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<Wanted>,
) -> Result<Answer<Availability>, Problem> {
    amount::request("resource", &wanted.resource)?;
    let found = find(&mut app.db.read().await?, &caller, &text).await?;
    Ok(Answer(Availability::of(&wanted.resource, &found.free())))
}

/// Takes resources: all of them or none.
#[utoipa::path(post, path = "/cluster/{id}/resource/", tag = "resource", request_body = Wanted,
    params(("id" = String, Path, description = "The cluster's id")),
    responses((status = 200, body = Shown, description = "Taken"), Problem))]
pub(crate) async fn resource_take(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<Wanted>,
) -> Result<Answer<Shown>, Problem> {
    amount::request("resource", &wanted.resource)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = find(&mut tx, &caller, &text).await?;
    caller.may_change(&found)?;
    let taken = store::cluster::take(&mut tx, found.id, &wanted.resource).await?;
    tx.commit().await?;
    Ok(Answer(taken.into()))
}

/// Gives back resources that were taken by hand: all of them or none.
#[utoipa::path(delete, path = "/cluster/{id}/resource/", tag = "resource", request_body = Wanted,
    params(("id" = String, Path, description = "The cluster's id")),
    responses((status = 200, body = Shown, description = "Given back"), Problem))]
pub(crate) async fn resource_give_back(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<Wanted>,
) -> Result<Answer<Shown>, Problem> {
    amount::request("resource", &wanted.resource)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = find(&mut tx, &caller, &text).await?;
    caller.may_change(&found)?;
    let given = store::cluster::give_back(&mut tx, found.id, &wanted.resource).await?;
    tx.commit().await?;
    Ok(Answer(given.into()))
}
