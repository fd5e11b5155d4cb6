//! Deployments.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::deployment::Spec;
use model::{DeploymentId, deployment, name};
use serde::Deserialize;
use store::deployment::{Change, Filter};
use utoipa::IntoParams;
use wire::deployment::{Deployment, DeploymentChange, NewDeployment, ReplicaStatus};
use wire::event::EventList;
use wire::explain::Forecast;

use super::explain::forecast;
use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::etag::{IfMatch, etag};
use crate::idempotency::Once;
use crate::page::{List, Query, Slice, flag, id, id_field, number};

fn checked(wanted: NewDeployment) -> Result<deployment::NewDeployment, Problem> {
    let pinned_to = wanted.cluster_id.as_deref().map(|text| id("cluster", text)).transpose()?;
    let spec = Spec {
        image: wanted.image,
        resources: wanted.resources,
        replicas: wanted.replicas.unwrap_or(1),
        env: wanted.env,
        command: wanted.command,
        ports: wanted.ports,
        restart: wanted.restart.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
        run_for: wanted.run_for,
        node_selector: wanted.node_selector,
        anti_affinity: wanted.anti_affinity,
        ..Spec::default()
    };
    let (name, priority, labels) = (wanted.name, wanted.priority, wanted.labels);
    Ok(deployment::NewDeployment { name, pinned_to, spec, priority, labels }.check("resources")?)
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
#[utoipa::path(post, path = "/api/v1/deployments", tag = "deployments", request_body = NewDeployment,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent"), Trial),
    responses((status = 201, body = Deployment, description = "Asked for"),
        (status = 200, body = Forecast, description = "What would happen (`dry_run=true`)"), Problem))]
pub(crate) async fn deployment_create(
    Call(app, caller): Call,
    once: Once,
    Query(trial): Query<Trial>,
    Json(wanted): Json<NewDeployment>,
) -> Result<Response, Problem> {
    let new = checked(wanted)?;
    if flag("dry_run", trial.dry_run.as_deref())? {
        return Ok(Answer(forecast(&app, &caller, &new).await?).into_response());
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
    Call(app, caller): Call,
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

/// One deployment.
#[utoipa::path(get, path = "/api/v1/deployments/{id}", tag = "deployments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Deployment, description = "The deployment"), Problem))]
pub(crate) async fn deployment_get(
    Call(app, caller): Call,
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
    Call(app, caller): Call,
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
    Call(app, caller): Call,
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
    Call(app, caller): Call,
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
