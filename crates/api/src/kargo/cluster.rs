//! Clusters, as the Kargo API has them: the organization's own, gone as soon as they are deleted.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::cluster::{self, NewCluster, Provider, Settings, Status};
use model::reason::Coded as _;
use model::{ClusterId, Resources, Time};
use serde::{Deserialize, Serialize};
use store::Read;
use utoipa::ToSchema;
use wire::amount::{Amount, Capacity, capacities};

use crate::Problem;
use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::page::{Numbered, NumberedList, Query, id};

/// A cluster to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewCluster)]
pub(crate) struct Wanted {
    /// Its name.
    cluster_name: String,
    /// How much it has of each resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resource: Resources,
}

/// A cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoCluster)]
pub(crate) struct Shown {
    /// Its id.
    #[schema(value_type = String)]
    id: ClusterId,
    /// Its name.
    cluster_name: String,
    /// Where it is on its way: `accepted`, `provisioning`, `provisioned`, `waiting_for_agent`,
    /// `ready`, `failed`.
    #[schema(value_type = String)]
    status: Status,
    /// Why it has that status; empty if there is nothing to add.
    status_reason: String,
    /// The code of that reason, such as `InsufficientCapacity`.
    reason_code: String,
    /// How much it has of each resource type.
    resource: BTreeMap<String, Capacity>,
    /// How many deployments are on it or wait for it.
    deployments: i64,
    /// Who made it: `user:<id>` or `server`.
    created_by: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<cluster::Cluster> for Shown {
    fn from(c: cluster::Cluster) -> Self {
        Self {
            id: c.id,
            cluster_name: c.name,
            status: c.status,
            status_reason: c.reason.to_string(),
            reason_code: c.reason.code().to_owned(),
            resource: capacities(c.capacity),
            deployments: c.deployments,
            created_by: c.created_by,
            created_at: c.created_at,
        }
    }
}

/// The cluster of that id, unless it is deleted or not the caller's to see.
pub(super) async fn find(
    read: &mut Read,
    caller: &Caller,
    text: &str,
) -> Result<cluster::Cluster, Problem> {
    let found = store::cluster::get(read, caller.own(), id("cluster", text)?).await?;
    if found.status.is_leaving() {
        return Err(Problem::not_found("cluster", text));
    }
    Ok(found)
}

/// Lists the organization's clusters.
#[utoipa::path(get, path = "/cluster/", tag = "cluster", params(Numbered),
    responses((status = 200, body = NumberedList<Shown>, description = "One page"), Problem))]
pub(crate) async fn cluster_list(
    Call(app, caller): Call,
    Query(numbered): Query<Numbered>,
) -> Result<Answer<NumberedList<Shown>>, Problem> {
    let page = numbered.page()?;
    let filter = store::cluster::Filter { only_own: true, ..store::cluster::Filter::default() };
    let mut read = app.db.read().await?;
    let total = store::cluster::count(&mut read, caller.own(), &filter).await?;
    let found = store::cluster::list(&mut read, caller.own(), &filter, &page).await?;
    let items = found.into_iter().map(Shown::from).collect();
    Ok(Answer(NumberedList::new(items, &page, total)))
}

/// Creates a cluster with resources. They can't be changed by users afterwards.
#[utoipa::path(put, path = "/cluster/", tag = "cluster", request_body = Wanted,
    responses((status = 201, body = Shown, description = "Created"), Problem))]
pub(crate) async fn cluster_create(
    Call(app, caller): Call,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, Answer<Shown>), Problem> {
    let new = NewCluster {
        name: wanted.cluster_name,
        provider: Provider::Local,
        settings: Settings::None,
        cloud_provider: "local".into(),
        region: "local".into(),
        labels: BTreeMap::new(),
        capacity: wanted.resource,
        nodes: Vec::new(),
    };
    let new = new.check(["cluster_name", "resource"])?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let made = store::cluster::create(&mut tx, Some(caller.user.organization_id), &new).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Answer(made.into())))
}

/// Shows a cluster: what it has of each resource, and how much of it is used.
#[utoipa::path(get, path = "/cluster/{id}/", tag = "cluster",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Shown, description = "The cluster"), Problem))]
pub(crate) async fn cluster_show(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Shown>, Problem> {
    let found = find(&mut app.db.read().await?, &caller, &text).await?;
    Ok(Answer(found.into()))
}

/// Deletes a cluster, if there are no deployments for it.
#[utoipa::path(delete, path = "/cluster/{id}/", tag = "cluster",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Shown, description = "Gone"), Problem))]
pub(crate) async fn cluster_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Shown>), Problem> {
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = find(&mut tx, &caller, &text).await?;
    caller.may_change(&found)?;
    let leaving = store::cluster::request_delete(&mut tx, &found, false).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(leaving.into())))
}
