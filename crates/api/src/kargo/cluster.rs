//! Clusters in the Kargo API: only the organization's own; hidden once their deletion is requested.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::cluster::{self, NewCluster, Provider, Settings, Status};
use model::reason::StatusReason as _;
use model::{ClusterId, Resources, Time};
use serde::{Deserialize, Serialize};
use store::Read;
use utoipa::ToSchema;
use wire::amount::{Amount, Capacity, capacities};

use crate::Problem;
use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::page::{NumberedList, NumberedPageQuery, Query, id};

/// A cluster to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewCluster)]
pub(crate) struct ClusterRequest {
    /// Name.
    cluster_name: String,
    /// Capacity by resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resource: Resources,
}

/// A cluster.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoCluster)]
pub(crate) struct ClusterResponse {
    /// Unique identifier.
    #[schema(value_type = String)]
    id: ClusterId,
    /// Name.
    cluster_name: String,
    /// One of `accepted`, `provisioning`, `provisioned`, `waiting_for_agent`, `ready`, `failed`.
    #[schema(value_type = String)]
    status: Status,
    /// Human-readable reason for the status; empty when there is nothing to add.
    status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    reason_code: String,
    /// Capacity by resource type.
    resource: BTreeMap<String, Capacity>,
    /// Number of deployments that run on the cluster or are pinned to it.
    deployments: i64,
    /// Creator: `user:<id>` or `server`.
    created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<cluster::Cluster> for ClusterResponse {
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

/// Returns the cluster with this ID, unless it is being deleted or not visible to the caller.
pub(super) async fn find(
    read: &mut Read,
    caller: &Caller,
    text: &str,
) -> Result<cluster::Cluster, Problem> {
    let found = store::cluster::get(read, caller.own(), id("cluster", text)?).await?;
    if found.status.is_deleting() {
        return Err(Problem::not_found("cluster", text));
    }
    Ok(found)
}

/// Lists the organization's clusters.
#[utoipa::path(get, path = "/cluster/", tag = "cluster", params(NumberedPageQuery),
    responses((status = 200, body = NumberedList<ClusterResponse>, description = "A page of the list"), Problem))]
pub(crate) async fn cluster_list(
    Call(app, caller): Call,
    Query(query): Query<NumberedPageQuery>,
) -> Result<Answer<NumberedList<ClusterResponse>>, Problem> {
    let page = query.page()?;
    let filter = store::cluster::Filter { only_own: true, ..store::cluster::Filter::default() };
    let mut read = app.db.read().await?;
    let total = store::cluster::count(&mut read, caller.own(), &filter).await?;
    let found = store::cluster::list(&mut read, caller.own(), &filter, &page).await?;
    let items = found.into_iter().map(ClusterResponse::from).collect();
    Ok(Answer(NumberedList::new(items, &page, total)))
}

/// Creates a cluster with resources. Users cannot change them afterwards.
#[utoipa::path(put, path = "/cluster/", tag = "cluster", request_body = ClusterRequest,
    responses((status = 201, body = ClusterResponse, description = "Created"), Problem))]
pub(crate) async fn cluster_create(
    Call(app, caller): Call,
    Json(request): Json<ClusterRequest>,
) -> Result<(StatusCode, Answer<ClusterResponse>), Problem> {
    let new = NewCluster {
        name: request.cluster_name,
        provider: Provider::Local,
        settings: Settings::None,
        cloud_provider: "local".into(),
        region: "local".into(),
        labels: BTreeMap::new(),
        capacity: request.resource,
        nodes: Vec::new(),
    };
    let new = new.check(["cluster_name", "resource"])?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let created = store::cluster::create(&mut tx, Some(caller.user.organization_id), &new).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Answer(created.into())))
}

/// Returns a cluster with its total and used resources.
#[utoipa::path(get, path = "/cluster/{id}/", tag = "cluster",
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 200, body = ClusterResponse, description = "The cluster"), Problem))]
pub(crate) async fn cluster_show(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<ClusterResponse>, Problem> {
    let found = find(&mut app.db.read().await?, &caller, &text).await?;
    Ok(Answer(found.into()))
}

/// Deletes a cluster. Fails while the cluster has deployments.
#[utoipa::path(delete, path = "/cluster/{id}/", tag = "cluster",
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 202, body = ClusterResponse, description = "Deletion accepted"), Problem))]
pub(crate) async fn cluster_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<ClusterResponse>), Problem> {
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = find(&mut tx, &caller, &text).await?;
    caller.may_change(&found)?;
    let deleting = store::cluster::request_delete(&mut tx, &found, false).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(deleting.into())))
}
