//! Deployments in the Kargo API: each is pinned to a cluster.

use std::collections::BTreeMap;
use std::fmt;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::deployment::{self, NewDeployment, Spec, Status};
use model::reason::StatusReason as _;
use model::{ClusterId, DeploymentId, Resources, Time};
use serde::{Deserialize, Serialize};
use store::Page;
use store::deployment::Filter;
use utoipa::{IntoParams, ToSchema};
use wire::amount::Amount;

use super::cluster::find;
use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::page::{NumberedList, NumberedPageQuery, Query, id};
use crate::platform::deployment::{must_not_belong_to_instance, with_encrypted_env};

/// Number of deployments deleted in one transaction.
const BATCH: i64 = 100;

/// A deployment to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewDeployment)]
pub(crate) struct DeploymentRequest {
    /// Cluster ID; numbers are accepted as well.
    #[schema(value_type = String)]
    cluster_id: TextOrNumber,
    /// Resources of each replica.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resource: Resources,
    /// Container image; without one, the deployment only reserves resources.
    image: Option<String>,
    /// Alias of `image`.
    docker_path: Option<String>,
    /// Name; derived from the image if omitted.
    name: Option<String>,
    /// Priority. Higher values are placed first and may preempt lower ones.
    priority: Option<i64>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// Command that replaces the image's command.
    command: Option<Vec<String>>,
    /// Ports that the container listens on.
    ports: Option<Vec<u16>>,
    /// Number of replicas, from 1 to 1000; defaults to 1.
    replicas: Option<u32>,
}

/// An ID, which older clients send as a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an ID, as text or as a number")]
enum TextOrNumber {
    Text(String),
    Number(u64),
}

impl fmt::Display for TextOrNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// A deployment.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoDeployment)]
pub(crate) struct DeploymentResponse {
    /// Unique identifier.
    #[schema(value_type = String)]
    id: DeploymentId,
    /// Cluster that hosts the deployment or that it is pinned to.
    #[schema(value_type = Option<String>)]
    cluster_id: Option<ClusterId>,
    /// Name.
    name: String,
    /// Container image; without one, the deployment only reserves capacity.
    image: Option<String>,
    /// Alias of `image`.
    docker_path: Option<String>,
    /// Resources of each replica.
    #[schema(value_type = BTreeMap<String, f64>)]
    resource: Resources,
    /// Number of replicas.
    replicas: u32,
    /// Priority. Higher values are placed first and may preempt lower ones.
    priority: i64,
    /// One of `queued`, `scheduled`, `starting`, `running`, `preempted`, `failed`, `completed`,
    /// `deleting`.
    #[schema(value_type = String)]
    status: Status,
    /// Human-readable reason for the status; empty when there is nothing to add.
    status_reason: String,
    /// Machine-readable reason code, such as `InsufficientCapacity`.
    reason_code: String,
    /// Addresses where it can be reached.
    endpoints: Vec<String>,
    /// Creator: `user:<id>` or `server`.
    created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<deployment::Deployment> for DeploymentResponse {
    fn from(d: deployment::Deployment) -> Self {
        Self {
            id: d.id,
            cluster_id: d.cluster_id(),
            name: d.name,
            image: d.spec.image.clone(),
            docker_path: d.spec.image,
            resource: d.spec.resources,
            replicas: d.spec.replicas,
            priority: d.priority,
            status: d.status,
            status_reason: d.reason.to_string(),
            reason_code: d.reason.code().to_owned(),
            endpoints: d.endpoints,
            created_by: d.created_by,
            created_at: d.created_at,
        }
    }
}

/// Filter for deployments.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeploymentQuery {
    /// Filters by cluster.
    cluster_id: Option<String>,
    /// Filters by ID.
    id: Option<String>,
}

/// Cluster whose deployments to delete.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClusterQuery {
    /// Cluster ID.
    #[serde(rename = "clusterId", alias = "cluster_id")]
    cluster: Option<String>,
}

/// Result of a bulk deletion.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoDeleted)]
pub(crate) struct Deleted {
    /// Number of deleted deployments.
    deleted: usize,
    /// IDs of the deleted deployments.
    #[schema(value_type = Vec<String>)]
    ids: Vec<DeploymentId>,
}

/// Lists the organization's deployments.
#[utoipa::path(get, path = "/deployment/", tag = "deployment", params(DeploymentQuery, NumberedPageQuery),
    responses((status = 200, body = NumberedList<DeploymentResponse>, description = "A page of the list"), Problem))]
pub(crate) async fn deployment_list(
    Call(app, caller): Call,
    Query(filter_query): Query<DeploymentQuery>,
    Query(query): Query<NumberedPageQuery>,
) -> Result<Answer<NumberedList<DeploymentResponse>>, Problem> {
    let page = query.page()?;
    let cluster = filter_query.cluster_id.map(|text| text.trim().parse()).transpose();
    let id = filter_query.id.map(|text| text.trim().parse()).transpose();
    let (Ok(cluster), Ok(id)) = (cluster, id) else {
        // An invalid ID matches nothing.
        return Ok(Answer(NumberedList::new(Vec::new(), &page, 0)));
    };
    let filter = Filter { id, cluster, ..Filter::default() };
    let mut read = app.db.read().await?;
    let total = store::deployment::count(&mut read, caller.own(), &filter).await?;
    let found = store::deployment::list(&mut read, caller.own(), &filter, &page).await?;
    let items = found.into_iter().map(DeploymentResponse::from).collect();
    Ok(Answer(NumberedList::new(items, &page, total)))
}

/// Creates a deployment on a cluster. It starts as soon as capacity is free.
#[utoipa::path(put, path = "/deployment/", tag = "deployment", request_body = DeploymentRequest,
    responses((status = 201, body = DeploymentResponse, description = "Created"), Problem))]
pub(crate) async fn deployment_create(
    Call(app, caller): Call,
    Json(request): Json<DeploymentRequest>,
) -> Result<(StatusCode, Answer<DeploymentResponse>), Problem> {
    let cluster_id = request.cluster_id.to_string();
    let id = app.db.id();
    let new = with_encrypted_env(&app, id, request.into_new()?).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let cluster = find(&mut tx, &caller, &cluster_id).await?;
    let new = NewDeployment { pinned_to: Some(cluster.id), ..new };
    let (owner, limits) = (caller.user.organization_id, app.settings.limits);
    let created = store::deployment::create_as(&mut tx, id, owner, &new, limits).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Answer(created.into())))
}

impl DeploymentRequest {
    fn into_new(self) -> Result<NewDeployment, Problem> {
        let image = match (self.image, self.docker_path) {
            (Some(image), Some(path)) if image != path => {
                return Err(Problem::field(
                    "docker_path",
                    "is an alias of image; set only one of them",
                ));
            }
            (image, path) => image.or(path),
        };
        let spec = Spec {
            image,
            resources: self.resource,
            replicas: self.replicas.unwrap_or(1),
            env: self.env.unwrap_or_default(),
            command: self.command.unwrap_or_default(),
            ports: self.ports.unwrap_or_default(),
            ..Spec::default()
        };
        let new = NewDeployment {
            name: self.name.unwrap_or_default(),
            pinned_to: None,
            spec,
            priority: self.priority.unwrap_or(0),
            labels: BTreeMap::new(),
        };
        Ok(new.check_unitless("resource")?)
    }
}

/// Deletes a deployment.
#[utoipa::path(delete, path = "/deployment/{id}/", tag = "deployment",
    params(("id" = String, Path, description = "Deployment ID")),
    responses((status = 202, body = DeploymentResponse, description = "Deletion accepted"), Problem))]
pub(crate) async fn deployment_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<DeploymentResponse>), Problem> {
    let id = id("deployment", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    must_not_belong_to_instance(&store::deployment::get(&mut tx, caller.own(), id).await?)?;
    let deleting = store::deployment::request_delete(&mut tx, caller.own(), id).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(deleting.into())))
}

/// Deletes all deployments of the organization on a cluster.
#[utoipa::path(delete, path = "/deployment/", tag = "deployment", params(ClusterQuery),
    responses((status = 202, body = Deleted, description = "Deletion accepted"), Problem))]
pub(crate) async fn deployment_delete_all(
    Call(app, caller): Call,
    Query(query): Query<ClusterQuery>,
) -> Result<(StatusCode, Answer<Deleted>), Problem> {
    let text = query
        .cluster
        .ok_or_else(|| Problem::field("clusterId", "is required: ?clusterId=<cluster ID>"))?;
    let cluster = find(&mut app.db.read().await?, &caller, &text).await?.id;
    let filter = Filter { cluster: Some(cluster), ..Filter::default() };
    let (mut ids, mut page) = (Vec::new(), Page::first(BATCH));
    loop {
        let mut tx = app.db.begin(caller.actor()).await?;
        let batch = store::deployment::list(&mut tx, caller.own(), &filter, &page).await?;
        let Some(last) = batch.last() else { break };
        page.after = Some(last.id.to_string());
        let batch: Vec<_> = batch.iter().map(|deployment| deployment.id).collect();
        ids.extend(store::deployment::request_delete_all(&mut tx, caller.own(), &batch).await?);
        tx.commit().await?;
    }
    Ok((StatusCode::ACCEPTED, Answer(Deleted { deleted: ids.len(), ids })))
}
