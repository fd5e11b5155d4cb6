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
use crate::idempotency::Once;
use crate::page::{List, Query, Slice, flag, id};
use crate::{App, Problem};
use provider::Secrets;

/// Which clusters are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClusterFilter {
    /// Only those in this status.
    status: Option<String>,
    /// Only those of this name.
    name: Option<String>,
}

/// Makes a cluster. It is `ready` shortly after: follow its status.
#[utoipa::path(post, path = "/api/v1/clusters", tag = "clusters", request_body = NewCluster,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 201, body = Cluster, description = "Asked for"), Problem))]
pub(crate) async fn cluster_create(
    Call(app, caller): Call,
    once: Once,
    Json(wanted): Json<NewCluster>,
) -> Result<Response, Problem> {
    let (new, secrets) = checked(wanted, &app, &caller)?;
    let id = app.db.id();
    let sealed = provider::sealed(&app, id, &secrets).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = once.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let organization = Some(caller.user.organization_id);
    let made = store::cluster::create_as(&mut tx, id, organization, &new).await?;
    store::operation::secret::put(&mut tx, id, &sealed).await?;
    let generation = made.generation;
    once.finish(&app, tx, &caller, &Cluster::from(made), etag(generation)).await
}

fn checked(
    wanted: NewCluster,
    app: &App,
    caller: &Caller,
) -> Result<(cluster::NewCluster, Secrets), Problem> {
    let provider = provider::provider(app, wanted.provider.as_deref())?;
    let (settings, secrets) =
        provider::told(caller, provider, wanted.kubernetes, wanted.terraform)?;
    let new = cluster::NewCluster {
        name: wanted.name,
        provider,
        settings,
        cloud_provider: wanted.cloud_provider.unwrap_or_else(|| "local".into()),
        region: wanted.region.unwrap_or_else(|| "local".into()),
        labels: wanted.labels,
        capacity: wanted.capacity,
        nodes: wanted.nodes.into_iter().map(cluster::NewNode::from).collect(),
    };
    Ok((new.check(["name", "capacity"])?, secrets))
}

/// Lists the organization's clusters and the shared ones.
#[utoipa::path(get, path = "/api/v1/clusters", tag = "clusters", params(ClusterFilter, Slice),
    responses((status = 200, body = List<Cluster>, description = "A part of the list"), Problem))]
pub(crate) async fn cluster_list(
    Call(app, caller): Call,
    Query(filter): Query<ClusterFilter>,
    Query(slice): Query<Slice>,
) -> Result<Answer<List<Cluster>>, Problem> {
    let page = slice.page()?;
    let status = filter.status.as_deref().map(str::parse).transpose()?;
    let filter = store::cluster::Filter { status, name: filter.name, only_own: false };
    let found =
        store::cluster::list(&mut app.db.read().await?, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Cluster::from).collect();
    Ok(Answer(List::new(items, &page, |c| c.id.to_string())))
}

/// One cluster.
#[utoipa::path(get, path = "/api/v1/clusters/{id}", tag = "clusters",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Cluster, description = "The cluster"), Problem))]
pub(crate) async fn cluster_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("cluster", &text)?;
    let found = store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok((etag(found.generation), Answer(Cluster::from(found))))
}

/// Changes what users wrote on a cluster, or, as the platform administrator, its totals.
#[utoipa::path(patch, path = "/api/v1/clusters/{id}", tag = "clusters", request_body = ClusterChange,
    params(("id" = String, Path, description = "Its id"),
        ("If-Match" = Option<String>, Header, description = "Change only this version")),
    responses((status = 200, body = Cluster, description = "Changed"), Problem))]
pub(crate) async fn cluster_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    seen: IfMatch,
    Json(change): Json<ClusterChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("cluster", &text)?;
    let new_name = change.name.as_deref().map(|text| name::line("name", text, 100)).transpose()?;
    change.labels.as_ref().map(|labels| name::labels("labels", labels)).transpose()?;
    change.capacity.as_ref().map(|total| cluster::total("capacity", total)).transpose()?;
    let nodes = change.nodes.map(new_nodes).transpose()?;
    let told = match change.kubernetes {
        Some(change) => Some(told_anew(&app, &caller, id, change).await?),
        None => None,
    };
    let mut tx = app.db.begin(caller.actor()).await?;
    let mut found = store::cluster::get(&mut tx, caller.scope(), id).await?;
    caller.may_change(&found)?;
    if change.capacity.is_some() || nodes.is_some() {
        caller.must_be_admin("change a cluster's capacity")?;
    }
    seen.check(found.generation)?;
    if let Some((settings, sealed)) = &told {
        store::operation::secret::put(&mut tx, id, sealed).await?;
        found = store::cluster::set_settings(&mut tx, id, settings).await?;
    }
    if new_name.is_some() || change.labels.is_some() {
        let (name, labels) = (new_name.as_deref(), change.labels.as_ref());
        found = store::cluster::set_words(&mut tx, id, name, labels).await?;
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

/// A transaction, and a cluster in it that the caller may change.
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

/// What a cluster's provider is told from now on, in the open and encrypted.
async fn told_anew(
    app: &App,
    caller: &Caller,
    id: ClusterId,
    change: KubernetesChange,
) -> Result<(cluster::Settings, BTreeMap<String, String>), Problem> {
    let now = store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    caller.may_change(&now)?;
    let (settings, secrets) = provider::told_anew(change, &now.settings)?;
    Ok((settings, provider::sealed(app, id, &secrets).await?))
}

pub(super) fn new_nodes(nodes: Vec<NewNode>) -> Result<Vec<cluster::NewNode>, Problem> {
    let nodes: Vec<_> = nodes.into_iter().map(cluster::NewNode::from).collect();
    if nodes.is_empty() {
        return Err(Problem::field("nodes", "a cluster has at least one node"));
    }
    cluster::nodes(&nodes)?;
    Ok(nodes)
}

/// How a cluster shall go.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Removal {
    /// `true`: it goes even if what was made for it can't be taken away; that is its owner's then.
    #[param(value_type = Option<bool>)]
    force: Option<String>,
}

/// Deletes a cluster; not while deployments exist.
#[utoipa::path(delete, path = "/api/v1/clusters/{id}", tag = "clusters",
    params(("id" = String, Path, description = "Its id"), Removal),
    responses((status = 202, body = Cluster, description = "On its way out"), Problem))]
pub(crate) async fn cluster_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Query(removal): Query<Removal>,
) -> Result<(StatusCode, Answer<Cluster>), Problem> {
    let is_forced = flag("force", removal.force.as_deref())?;
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    let leaving = store::cluster::request_delete(&mut tx, &found, is_forced).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(leaving.into())))
}

/// Tells whether the cluster has that much free right now.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/capacity/check", tag = "clusters",
    params(("id" = String, Path, description = "Its id")), request_body = ResourceRequest,
    responses((status = 200, body = Availability, description = "Whether it fits"), Problem))]
pub(crate) async fn capacity_check(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<ResourceRequest>,
) -> Result<Answer<Availability>, Problem> {
    let id = id("cluster", &text)?;
    amount::request("resources", &wanted.resources)?;
    let found = store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    Ok(Answer(Availability::of(&wanted.resources, &found.free())))
}

/// Takes capacity by hand: all of it or none.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/capacity/take", tag = "clusters",
    params(("id" = String, Path, description = "Its id")), request_body = ResourceRequest,
    responses((status = 200, body = Cluster, description = "Taken"), Problem))]
pub(crate) async fn capacity_take(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<ResourceRequest>,
) -> Result<Answer<Cluster>, Problem> {
    let id = id("cluster", &text)?;
    amount::request("resources", &wanted.resources)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    caller.may_change(&store::cluster::get(&mut tx, caller.scope(), id).await?)?;
    let taken = store::cluster::take(&mut tx, id, &wanted.resources).await?;
    tx.commit().await?;
    Ok(Answer(taken.into()))
}

/// Gives back what was taken by hand: all of it or none. What deployments hold is not touched.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/capacity/give-back", tag = "clusters",
    params(("id" = String, Path, description = "Its id")), request_body = ResourceRequest,
    responses((status = 200, body = Cluster, description = "Given back"), Problem))]
pub(crate) async fn capacity_give_back(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<ResourceRequest>,
) -> Result<Answer<Cluster>, Problem> {
    let id = id("cluster", &text)?;
    amount::request("resources", &wanted.resources)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    caller.may_change(&store::cluster::get(&mut tx, caller.scope(), id).await?)?;
    let given = store::cluster::give_back(&mut tx, id, &wanted.resources).await?;
    tx.commit().await?;
    Ok(Answer(given.into()))
}
