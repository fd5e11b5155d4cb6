//! Deployments.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::deployment::{NewDeployment, Restart, Spec, Status};
use model::replica::Replica;
use model::{ClusterId, DeploymentId, OrganizationId, Resources, Time, deployment, name};
use serde::{Deserialize, Serialize};
use store::deployment::{Change, Filter};
use utoipa::{IntoParams, ToSchema};

use super::event::EventList;
use super::explain::Forecast;
use crate::amount::Amount;
use crate::body::Json;
use crate::caller::Caller;
use crate::etag::{IfMatch, etag};
use crate::idempotency::Once;
use crate::page::{List, Query, Slice, flag, id, id_field, number};
use crate::{App, Problem};

/// A deployment.
#[derive(Serialize, ToSchema)]
pub(crate) struct Deployment {
    /// Its id.
    #[schema(value_type = String)]
    id: DeploymentId,
    /// The organization that it belongs to.
    #[schema(value_type = String)]
    organization_id: OrganizationId,
    /// Where it is, or must go; nothing while any cluster will do.
    #[schema(value_type = Option<String>)]
    cluster_id: Option<ClusterId>,
    /// Its name.
    name: String,
    /// What it runs; without one it only holds its capacity.
    image: Option<String>,
    /// What each replica needs.
    #[schema(value_type = BTreeMap<String, f64>)]
    resources: Resources,
    /// How many run.
    replicas: u32,
    /// Higher goes first, and may make lower ones yield.
    priority: i64,
    /// Environment variables.
    env: BTreeMap<String, String>,
    /// What to run instead of the image's own command.
    command: Vec<String>,
    /// The ports that it listens on.
    ports: Vec<u16>,
    /// What users wrote on it.
    labels: BTreeMap<String, String>,
    /// What happens when its program ends by itself: `never`, `on_failure`, `always`.
    #[schema(value_type = String)]
    restart: Restart,
    /// How many seconds each replica runs; without limit when there is none.
    run_for: Option<u32>,
    /// Labels that the node of each replica (or its cluster) must have.
    node_selector: BTreeMap<String, String>,
    /// Must each replica be on another node?
    anti_affinity: bool,
    /// Where it is on its way: `queued`, `scheduled`, `starting`, `running`, `preempted`, `failed`,
    /// `completed`, `deleting`.
    #[schema(value_type = String)]
    status: Status,
    /// Why it is there.
    status_reason: String,
    /// Where on the cluster it runs.
    node: Option<String>,
    /// Where it can be reached.
    endpoints: Vec<String>,
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
    /// Since when it runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Time>,
    /// Its replicas, by number; only where one deployment is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_statuses: Option<Vec<ReplicaStatus>>,
}

impl From<deployment::Deployment> for Deployment {
    fn from(d: deployment::Deployment) -> Self {
        Self {
            id: d.id,
            organization_id: d.organization_id,
            cluster_id: d.cluster_id(),
            name: d.name,
            image: d.spec.image,
            resources: d.spec.resources,
            replicas: d.spec.replicas,
            priority: d.priority,
            env: d.spec.env,
            command: d.spec.command,
            ports: d.spec.ports,
            labels: d.labels,
            restart: d.spec.restart,
            run_for: d.spec.run_for,
            node_selector: d.spec.node_selector,
            anti_affinity: d.spec.anti_affinity,
            status: d.status,
            status_reason: d.status_reason,
            node: d.node,
            endpoints: d.endpoints,
            generation: d.generation,
            created_by: d.created_by,
            created_at: d.created_at,
            updated_at: d.updated_at,
            started_at: d.started_at,
            replica_statuses: None,
        }
    }
}

/// A deployment to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewDeployment)]
pub(crate) struct Wanted {
    /// Made from the image when it is left out.
    #[serde(default)]
    name: String,
    /// `registry/name:tag`; without one the deployment only holds its capacity.
    image: Option<String>,
    /// Where it must run; any cluster with room when it is left out.
    cluster_id: Option<String>,
    /// What each replica needs.
    #[schema(value_type = BTreeMap<String, Amount>)]
    resources: Resources,
    /// Higher goes first, and may make lower ones yield. 0 when it is left out.
    #[serde(default)]
    priority: i64,
    /// How many run; 1 when it is left out.
    #[schema(minimum = 1, maximum = 1000)]
    replicas: Option<u32>,
    /// Environment variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// What to run instead of the image's own command.
    #[serde(default)]
    command: Vec<String>,
    /// The ports that it listens on.
    #[serde(default)]
    ports: Vec<u16>,
    /// What users wrote on it.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// What happens when its program ends by itself: `never`, `on_failure` (when it is left out),
    /// `always`.
    restart: Option<String>,
    /// How many seconds each replica runs; then it is completed.
    #[schema(minimum = 1)]
    run_for: Option<u32>,
    /// Labels that the node of each replica (or its cluster) must have.
    #[serde(default)]
    node_selector: BTreeMap<String, String>,
    /// Must each replica be on another node?
    #[serde(default)]
    anti_affinity: bool,
}

impl Wanted {
    fn checked(self) -> Result<NewDeployment, Problem> {
        let pinned_to = self.cluster_id.as_deref().map(|text| id("cluster", text)).transpose()?;
        let spec = Spec {
            image: self.image,
            resources: self.resources,
            replicas: self.replicas.unwrap_or(1),
            env: self.env,
            command: self.command,
            ports: self.ports,
            restart: self.restart.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
            run_for: self.run_for,
            node_selector: self.node_selector,
            anti_affinity: self.anti_affinity,
            ..Spec::default()
        };
        let (name, priority, labels) = (self.name, self.priority, self.labels);
        Ok(NewDeployment { name, pinned_to, spec, priority, labels }.check("resources")?)
    }
}

/// What of a deployment shall change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeploymentChange {
    /// Its new name.
    name: Option<String>,
    /// Higher goes first, and may make lower ones yield.
    priority: Option<i64>,
    /// All its labels from now on.
    labels: Option<BTreeMap<String, String>>,
    /// How many run. Those that are too many are stopped, those that are missing are placed.
    #[schema(minimum = 1, maximum = 1000)]
    replicas: Option<u32>,
}

/// Which deployments are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeploymentFilter {
    /// Only those on this cluster, or pinned to it.
    cluster_id: Option<String>,
    /// Only those in this status.
    status: Option<String>,
    /// Only those of this name.
    name: Option<String>,
}

/// Makes a deployment. It runs as soon as there is room: follow its status.
#[utoipa::path(post, path = "/api/v1/deployments", tag = "deployments", request_body = Wanted,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent"), Trial),
    responses((status = 201, body = Deployment, description = "Asked for"),
        (status = 200, body = Forecast, description = "What would happen (`dry_run=true`)"), Problem))]
pub(crate) async fn deployment_create(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    Query(trial): Query<Trial>,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Problem> {
    let new = wanted.checked()?;
    if flag("dry_run", trial.dry_run.as_deref())? {
        return Ok(Answer(Forecast::of(&app, &caller, &new).await?).into_response());
    }
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = once.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let (owner, limits) = (caller.user.organization_id, app.settings.limits);
    let made = store::deployment::create(&mut tx, owner, &new, limits).await?;
    let generation = made.generation;
    once.finish(&app, tx, &caller, &Deployment::from(made), etag(generation)).await
}

/// Whether to do it.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Trial {
    /// Only tells what would happen.
    #[param(value_type = Option<bool>)]
    dry_run: Option<String>,
}

/// Lists the organization's deployments.
#[utoipa::path(get, path = "/api/v1/deployments", tag = "deployments", params(DeploymentFilter, Slice),
    responses((status = 200, body = List<Deployment>, description = "A part of the list"), Problem))]
pub(crate) async fn deployment_list(
    State(app): State<App>,
    caller: Caller,
    Query(filter): Query<DeploymentFilter>,
    Query(slice): Query<Slice>,
) -> Result<Answer<List<Deployment>>, Problem> {
    let page = slice.page()?;
    let cluster = filter.cluster_id.map(|text| id_field("cluster_id", &text)).transpose()?;
    let status = filter.status.as_deref().map(str::parse).transpose()?;
    let filter = Filter { name: filter.name, cluster, status, ..Filter::default() };
    let found =
        store::deployment::list(&mut app.db.read().await?, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Deployment::from).collect();
    Ok(Answer(List::new(items, &page, |d| d.id.to_string())))
}

/// One replica of a deployment.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplicaStatus {
    /// Which; numbers are not used again.
    number: u32,
    /// As a deployment's.
    #[schema(value_type = String)]
    status: Status,
    /// Why it is there.
    status_reason: String,
    /// The cluster whose capacity it holds.
    #[schema(value_type = Option<String>)]
    cluster_id: Option<ClusterId>,
    /// The node whose capacity it holds.
    node: Option<String>,
    /// Where it can be reached.
    endpoints: Vec<String>,
    /// Since when it runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Time>,
}

impl From<Replica> for ReplicaStatus {
    fn from(replica: Replica) -> Self {
        let (cluster_id, node) =
            replica.place.map(|place| (place.cluster, place.node.to_string())).unzip();
        Self {
            number: replica.id.number,
            status: replica.status,
            status_reason: replica.status_reason,
            cluster_id,
            node,
            endpoints: replica.endpoints,
            started_at: replica.started_at,
        }
    }
}

/// One deployment.
#[utoipa::path(get, path = "/api/v1/deployments/{id}", tag = "deployments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Deployment, description = "The deployment"), Problem))]
pub(crate) async fn deployment_get(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("deployment", &text)?;
    let mut read = app.db.read().await?;
    let found = store::deployment::get(&mut read, caller.scope(), id).await?;
    let replicas = store::deployment::replica::of(&mut read, id).await?;
    let replica_statuses = Some(replicas.into_iter().map(ReplicaStatus::from).collect());
    let tag = etag(found.generation);
    Ok((tag, Answer(Deployment { replica_statuses, ..found.into() })))
}

/// Changes a deployment's name, priority, labels or number of replicas.
#[utoipa::path(patch, path = "/api/v1/deployments/{id}", tag = "deployments",
    params(("id" = String, Path, description = "Its id"),
        ("If-Match" = Option<String>, Header, description = "Change only this version")),
    request_body = DeploymentChange,
    responses((status = 200, body = Deployment, description = "Changed"), Problem))]
pub(crate) async fn deployment_update(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    seen: IfMatch,
    Json(change): Json<DeploymentChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("deployment", &text)?;
    let name = change.name.as_deref().map(|text| name::line("name", text, 100)).transpose()?;
    change.priority.map(deployment::priority).transpose()?;
    change.replicas.map(deployment::replicas).transpose()?;
    change.labels.as_ref().map(|labels| name::labels("labels", labels)).transpose()?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::deployment::get(&mut tx, caller.scope(), id).await?;
    must_be_users_own(&found)?;
    seen.check(found.generation)?;
    let (priority, replicas) = (change.priority, change.replicas);
    let change = Change { name, priority, labels: change.labels, replicas };
    let changed = store::deployment::set(&mut tx, id, &change).await?;
    tx.commit().await?;
    Ok((etag(changed.generation), Answer(Deployment::from(changed))))
}

/// Deletes a deployment. What runs is stopped first: follow its status.
#[utoipa::path(delete, path = "/api/v1/deployments/{id}", tag = "deployments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Deployment, description = "On its way out"), Problem))]
pub(crate) async fn deployment_delete(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Deployment>), Problem> {
    let id = id("deployment", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    must_be_users_own(&store::deployment::get(&mut tx, caller.scope(), id).await?)?;
    let leaving = store::deployment::request_delete(&mut tx, caller.scope(), id).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(leaving.into())))
}

/// What holds the capacity of an instance is changed with the instance alone.
pub(crate) fn must_be_users_own(found: &deployment::Deployment) -> Result<(), Problem> {
    let Some(instance) = found.instance_id else { return Ok(()) };
    Err(Problem::conflict(format!(
        "The deployment {} belongs to the instance {instance}; change or delete that.",
        found.id
    )))
}

/// What happened to a deployment, oldest first; also after its end.
#[utoipa::path(get, path = "/api/v1/deployments/{id}/history", tag = "deployments",
    params(("id" = String, Path, description = "Its id"),
        ("limit" = Option<i64>, Query, description = "How many at most"),
        ("after" = Option<i64>, Query, description = "The last seq of the part before")),
    responses((status = 200, body = EventList, description = "A part of the list"), Problem))]
pub(crate) async fn deployment_history(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Result<Answer<EventList>, Problem> {
    let id: DeploymentId = id("deployment", &text)?;
    let limit = number("limit", query.get("limit").map(String::as_str), 100, 1, 1000)?;
    let after = number("after", query.get("after").map(String::as_str), 0, 0, i64::MAX)?;
    app.db.settle_events().await?;
    let subject = Some(id.to_string());
    let filter = store::event::Filter { subject, ..store::event::Filter::default() };
    let found =
        store::event::list(&mut app.db.read().await?, caller.scope(), &filter, after, limit + 1)
            .await?;
    if found.is_empty() && after == 0 {
        return Err(Problem::not_found("deployment", &text));
    }
    Ok(Answer(EventList::new(found, limit)))
}
