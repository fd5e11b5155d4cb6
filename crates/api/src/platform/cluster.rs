//! Clusters and their capacity.

pub(crate) mod condition;
pub(crate) mod provider;

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::{ClusterId, cluster, name};
use serde::Deserialize;
use store::Tx;
use utoipa::IntoParams;
use wire::amount::{Availability, ResourceRequest};
use wire::cluster::Cluster;
use wire::cluster::request::{ClusterChange, KubernetesChange, NewCluster, NewNode};

use crate::amount;
use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::etag::{IfMatch, etag};
use crate::idempotency::IdempotencyKey;
use crate::page::{List, PageQuery, Query, flag, id};
use crate::{App, Problem};
use provider::Secrets;

/// Filter for clusters.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClusterFilter {
    /// Filters by status.
    status: Option<String>,
    /// Filters by name.
    name: Option<String>,
}

/// Creates a cluster.
///
/// Creation is asynchronous: follow the status until it is `ready`.
#[utoipa::path(post, path = "/api/v1/clusters", tag = "clusters", request_body = NewCluster,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 201, body = Cluster, description = "Created"), Problem))]
pub(crate) async fn cluster_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    Json(request): Json<NewCluster>,
) -> Result<Response, Problem> {
    let (new, secrets) = checked(request, &app, &caller)?;
    let id = app.db.id();
    let sealed = provider::encrypt_secrets(&app, id, &secrets).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = key.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let organization = Some(caller.user.organization_id);
    let created = store::cluster::create_with_id(&mut tx, id, organization, &new).await?;
    store::operation::secret::set_unfenced(&mut tx, id, &sealed).await?;
    let generation = created.generation;
    key.finish(&app, tx, &caller, &Cluster::from(created), etag(generation)).await
}

fn checked(
    request: NewCluster,
    app: &App,
    caller: &Caller,
) -> Result<(cluster::NewCluster, Secrets), Problem> {
    let provider = provider::provider(app, request.provider.as_deref())?;
    let (settings, secrets) =
        provider::settings(caller, provider, request.kubernetes, request.terraform)?;
    let new = cluster::NewCluster {
        name: request.name,
        provider,
        settings,
        cloud_provider: request.cloud_provider.unwrap_or_else(|| "local".into()),
        region: request.region.unwrap_or_else(|| "local".into()),
        labels: request.labels,
        capacity: request.capacity,
        nodes: request.nodes.into_iter().map(cluster::NewNode::from).collect(),
    };
    Ok((new.check(["name", "capacity"])?, secrets))
}

/// Lists the organization's clusters and the shared ones.
#[utoipa::path(get, path = "/api/v1/clusters", tag = "clusters", params(ClusterFilter, PageQuery),
    responses((status = 200, body = List<Cluster>, description = "A page of the list"), Problem))]
pub(crate) async fn cluster_list(
    Call(app, caller): Call,
    Query(filter): Query<ClusterFilter>,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Cluster>>, Problem> {
    let page = paging.page()?;
    let status = filter.status.as_deref().map(str::parse).transpose()?;
    let filter = store::cluster::Filter { status, name: filter.name, only_own: false };
    let found =
        store::cluster::list(&mut app.db.read().await?, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Cluster::from).collect();
    Ok(Answer(List::new(items, &page, |c| c.id.to_string())))
}

/// Returns a cluster.
#[utoipa::path(get, path = "/api/v1/clusters/{id}", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")),
    responses((status = 200, body = Cluster, description = "The cluster"), Problem))]
pub(crate) async fn cluster_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("cluster", &text)?;
    let found = store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok((etag(found.generation), Answer(Cluster::from(found))))
}

/// Updates a cluster.
///
/// Only the platform administrator may change the capacity or the nodes.
#[utoipa::path(patch, path = "/api/v1/clusters/{id}", tag = "clusters", request_body = ClusterChange,
    params(("id" = String, Path, description = "Cluster ID"),
        ("If-Match" = Option<String>, Header, description = "ETag; the update fails if it does not match")),
    responses((status = 200, body = Cluster, description = "Updated"), Problem))]
pub(crate) async fn cluster_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    if_match: IfMatch,
    Json(change): Json<ClusterChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("cluster", &text)?;
    let new_name = change.name.as_deref().map(|text| name::line("name", text, 100)).transpose()?;
    change.labels.as_ref().map(|labels| name::labels("labels", labels)).transpose()?;
    change.capacity.as_ref().map(|total| cluster::check_capacity("capacity", total)).transpose()?;
    let nodes = change.nodes.map(new_nodes).transpose()?;
    let updated_settings = match change.kubernetes {
        Some(change) => Some(update_settings(&app, &caller, id, change).await?),
        None => None,
    };
    let mut tx = app.db.begin(caller.actor()).await?;
    let mut found = store::cluster::get(&mut tx, caller.scope(), id).await?;
    caller.may_change(&found)?;
    if change.capacity.is_some() || nodes.is_some() {
        caller.must_be_admin("change a cluster's capacity")?;
    }
    if_match.check(found.generation)?;
    if let Some((settings, sealed)) = &updated_settings {
        store::operation::secret::set_unfenced(&mut tx, id, sealed).await?;
        found = store::cluster::set_settings(&mut tx, id, settings).await?;
    }
    if new_name.is_some() || change.labels.is_some() {
        let (name, labels) = (new_name.as_deref(), change.labels.as_ref());
        found = store::cluster::set_metadata(&mut tx, id, name, labels).await?;
    }
    if let Some(total) = &change.capacity {
        found = store::cluster::set_total(&mut tx, id, total).await?;
    }
    if let Some(nodes) = &nodes {
        found = store::cluster::set_nodes(&mut tx, id, nodes).await?;
    }
    tx.commit().await?;
    Ok((etag(found.generation), Answer(Cluster::from(found))))
}

/// Begins a transaction and reads a cluster that the caller may change.
async fn changeable(
    app: &App,
    caller: &Caller,
    text: &str,
) -> Result<(Tx, cluster::Cluster), Problem> {
    let id = id("cluster", text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::cluster::get(&mut tx, caller.scope(), id).await?;
    caller.may_change(&found)?;
    Ok((tx, found))
}

/// Returns the updated provider settings and the encrypted secrets.
async fn update_settings(
    app: &App,
    caller: &Caller,
    id: ClusterId,
    change: KubernetesChange,
) -> Result<(cluster::Settings, BTreeMap<String, String>), Problem> {
    let now = store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    caller.may_change(&now)?;
    let (settings, secrets) = provider::update_settings(change, &now.settings)?;
    Ok((settings, provider::encrypt_secrets(app, id, &secrets).await?))
}

pub(super) fn new_nodes(nodes: Vec<NewNode>) -> Result<Vec<cluster::NewNode>, Problem> {
    let nodes: Vec<_> = nodes.into_iter().map(cluster::NewNode::from).collect();
    if nodes.is_empty() {
        return Err(Problem::field("nodes", "must have at least one item"));
    }
    cluster::check_nodes(&nodes)?;
    Ok(nodes)
}

/// Deletion options.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// Whether to delete the cluster even if its infrastructure cannot be destroyed. The owner must
    /// then remove the infrastructure.
    #[param(value_type = Option<bool>)]
    force: Option<String>,
}

/// Deletes a cluster. Fails while the cluster has deployments.
#[utoipa::path(delete, path = "/api/v1/clusters/{id}", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID"), DeleteQuery),
    responses((status = 202, body = Cluster, description = "Deletion accepted"), Problem))]
pub(crate) async fn cluster_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Query(query): Query<DeleteQuery>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let is_forced = flag("force", query.force.as_deref())?;
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let deleting = store::cluster::request_delete(&mut tx, &found, is_forced).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(deleting.into())))
}

/// Checks whether a cluster has the requested capacity free.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/capacity/check", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")), request_body = ResourceRequest,
    responses((status = 200, body = Availability, description = "Result of the check"), Problem))]
pub(crate) async fn capacity_check(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<ResourceRequest>,
) -> Result<Answer<Availability>, Problem> {
    let id = id("cluster", &text)?;
    amount::request("resources", &request.resources)?;
    let found = store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok(Answer(Availability::check(&request.resources, &found.free())))
}

/// Reserves capacity manually: all of it or none.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/capacity/take", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")), request_body = ResourceRequest,
    responses((status = 200, body = Cluster, description = "Reserved"), Problem))]
pub(crate) async fn capacity_take(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<ResourceRequest>,
) -> Result<Answer<Cluster>, Problem> {
    let id = id("cluster", &text)?;
    amount::request("resources", &request.resources)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    caller.may_change(&store::cluster::get(&mut tx, caller.scope(), id).await?)?;
    let reserved = store::cluster::reserve(&mut tx, id, &request.resources).await?;
    tx.commit().await?;
    Ok(Answer(reserved.into()))
}

/// Releases manually reserved capacity: all of it or none.
///
/// Capacity held by deployments is not affected.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/capacity/give-back", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")), request_body = ResourceRequest,
    responses((status = 200, body = Cluster, description = "Released"), Problem))]
pub(crate) async fn capacity_give_back(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<ResourceRequest>,
) -> Result<Answer<Cluster>, Problem> {
    let id = id("cluster", &text)?;
    amount::request("resources", &request.resources)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    caller.may_change(&store::cluster::get(&mut tx, caller.scope(), id).await?)?;
    let released = store::cluster::release(&mut tx, id, &request.resources).await?;
    tx.commit().await?;
    Ok(Answer(released.into()))
}
