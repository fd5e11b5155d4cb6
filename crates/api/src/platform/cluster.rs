//! Clusters and their capacity.

pub(crate) mod condition;
pub(crate) mod provider;

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::cluster::{NewCluster, Provider, Status};
use model::{ClusterId, OrganizationId, Resources, Time, cluster, name};
use serde::{Deserialize, Serialize};
use store::Tx;
use utoipa::{IntoParams, ToSchema};

use crate::amount::{self, Amount, Availability, Capacity};
use crate::body::Json;
use crate::caller::Caller;
use crate::etag::{IfMatch, etag};
use crate::idempotency::Once;
use crate::page::{List, Query, Slice, flag, id};
use crate::{App, Problem};
use provider::Secrets;

/// A cluster.
#[derive(Serialize, ToSchema)]
pub(crate) struct Cluster {
    /// Its id.
    #[schema(value_type = String)]
    id: ClusterId,
    /// Who owns it; nobody when it is shared by all.
    #[schema(value_type = Option<String>)]
    organization_id: Option<OrganizationId>,
    /// Is it shared by all organizations?
    shared: bool,
    /// Its name.
    name: String,
    /// Where it is on its way: `accepted`, `provisioning`, `provisioned`, `waiting_for_agent`,
    /// `ready`, `unreachable`, `failed`, `deprovisioning`, `cleanup`.
    #[schema(value_type = String)]
    status: Status,
    /// Why it is there.
    status_reason: String,
    /// Who serves it: `local` is this machine; `agent` is whoever runs `paddock agent` beside it;
    /// `kubernetes` is a Kubernetes that there is; `terraform` is what a module makes.
    #[schema(value_type = String)]
    provider: Provider,
    /// What is known of its Kubernetes, if it is one.
    kubernetes: Option<provider::Kubernetes>,
    /// What is known of its Terraform module, if one makes it.
    terraform: Option<provider::Terraform>,
    /// Since when it takes nothing new and what is on it moves elsewhere, if it is being drained.
    #[schema(value_type = Option<String>, format = DateTime)]
    draining_at: Option<Time>,
    /// Whose machines it stands on.
    cloud_provider: String,
    /// Where at the cloud provider it stands.
    region: String,
    /// What users wrote on it.
    labels: BTreeMap<String, String>,
    /// What its agent last said of itself, if it speaks over the network.
    agent: Option<Heard>,
    /// How much it has of each resource type.
    capacity: BTreeMap<String, Capacity>,
    /// What it is made of. What runs, runs on one of them.
    nodes: Vec<Node>,
    /// How many deployments are on it or pinned to it.
    deployments: i64,
    /// Counts the changes of what users set; also its ETag.
    generation: i64,
    /// Who made it: `user:<id>` or `server`.
    created_by: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

impl From<cluster::Cluster> for Cluster {
    fn from(c: cluster::Cluster) -> Self {
        let (kubernetes, terraform) = provider::shown(c.settings);
        Self {
            id: c.id,
            organization_id: c.organization_id,
            shared: c.organization_id.is_none(),
            name: c.name,
            status: c.status,
            status_reason: c.status_reason,
            provider: c.provider,
            kubernetes,
            terraform,
            draining_at: c.draining_at,
            cloud_provider: c.cloud_provider,
            region: c.region,
            labels: c.labels,
            agent: c.agent.map(Heard::from),
            capacity: amount::capacities(c.capacity),
            nodes: c.nodes.into_iter().map(Node::from).collect(),
            deployments: c.deployments,
            generation: c.generation,
            created_by: c.created_by,
            created_at: c.created_at,
            updated_at: c.updated_at,
        }
    }
}

/// What an agent last said of itself.
#[derive(Serialize, ToSchema)]
pub(crate) struct Heard {
    /// When it last spoke, give or take a few seconds.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// Its version.
    version: String,
    /// What it runs containers with.
    runtime: String,
}

impl From<cluster::Heard> for Heard {
    fn from(heard: cluster::Heard) -> Self {
        Self { at: heard.at, version: heard.version, runtime: heard.runtime }
    }
}

/// A part of a cluster.
#[derive(Serialize, ToSchema)]
pub(crate) struct Node {
    /// Its name.
    name: String,
    /// What is written on it, beside its cluster's labels.
    labels: BTreeMap<String, String>,
    /// How much it has of each resource type.
    capacity: BTreeMap<String, Capacity>,
}

impl From<cluster::Node> for Node {
    fn from(node: cluster::Node) -> Self {
        let capacity = amount::capacities(node.capacity);
        Self { name: node.name, labels: node.labels, capacity }
    }
}

/// A part of a cluster to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewNode {
    /// Its name, unique in its cluster.
    name: String,
    /// How much it has of each resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    capacity: Resources,
    /// What is written on it, beside its cluster's labels.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl From<NewNode> for cluster::NewNode {
    fn from(node: NewNode) -> Self {
        Self { name: node.name, capacity: node.capacity, labels: node.labels }
    }
}

/// A cluster to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewCluster)]
pub(crate) struct Wanted {
    /// Its name.
    name: String,
    /// `local`: this machine serves it, with the capacity that is declared here. `agent`: whoever
    /// runs `paddock agent` beside it, with the capacity that the agent reports. `kubernetes`: a
    /// Kubernetes that there is; the agent is installed there. `terraform`: what a module makes.
    provider: Option<String>,
    /// With provider `kubernetes`: how it is reached, and what of it may be used.
    kubernetes: Option<provider::NewKubernetes>,
    /// With provider `terraform`: the module and its variables.
    terraform: Option<provider::NewTerraform>,
    /// How much it has of each resource type; the sum of its nodes, if it has any. May be left out
    /// when an agent will report it.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Amount>)]
    capacity: Resources,
    /// What it is made of; one node that has all the capacity when it is left out.
    #[serde(default)]
    nodes: Vec<NewNode>,
    /// What users wrote on it.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Whose machines it stands on.
    cloud_provider: Option<String>,
    /// Where at the cloud provider it stands.
    region: Option<String>,
}

/// What of a cluster shall change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterChange {
    /// Its new name.
    name: Option<String>,
    /// All its labels from now on.
    labels: Option<BTreeMap<String, String>>,
    /// New totals, never below what is used; by the platform administrator only.
    #[schema(value_type = Option<BTreeMap<String, Amount>>)]
    capacity: Option<Resources>,
    /// All its nodes from now on; by the platform administrator only. What is in use stays.
    nodes: Option<Vec<NewNode>>,
    /// What of its Kubernetes shall change.
    kubernetes: Option<provider::KubernetesChange>,
}

/// An amount of each resource type.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceRequest {
    /// How much of each resource type.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resources: Resources,
}

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
#[utoipa::path(post, path = "/api/v1/clusters", tag = "clusters", request_body = Wanted,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 201, body = Cluster, description = "Asked for"), Problem))]
pub(crate) async fn cluster_create(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Problem> {
    let (new, secrets) = wanted.checked(&app, &caller)?;
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

impl Wanted {
    fn checked(self, app: &App, caller: &Caller) -> Result<(NewCluster, Secrets), Problem> {
        let provider = provider::provider(app, self.provider.as_deref())?;
        let (settings, secrets) =
            provider::told(caller, provider, self.kubernetes, self.terraform)?;
        let new = NewCluster {
            name: self.name,
            provider,
            settings,
            cloud_provider: self.cloud_provider.unwrap_or_else(|| "local".into()),
            region: self.region.unwrap_or_else(|| "local".into()),
            labels: self.labels,
            capacity: self.capacity,
            nodes: self.nodes.into_iter().map(cluster::NewNode::from).collect(),
        };
        Ok((new.check(["name", "capacity"])?, secrets))
    }
}

/// Lists the organization's clusters and the shared ones.
#[utoipa::path(get, path = "/api/v1/clusters", tag = "clusters", params(ClusterFilter, Slice),
    responses((status = 200, body = List<Cluster>, description = "A part of the list"), Problem))]
pub(crate) async fn cluster_list(
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
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
    change: provider::KubernetesChange,
) -> Result<(cluster::Settings, BTreeMap<String, String>), Problem> {
    let now = store::cluster::get(&mut app.db.read().await?, caller.scope(), id).await?;
    caller.may_change(&now)?;
    let (settings, secrets) = change.told(&now.settings)?;
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
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
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
    State(app): State<App>,
    caller: Caller,
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
