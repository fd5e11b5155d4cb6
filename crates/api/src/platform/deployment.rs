//! Deployments.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::access::{Action, SubjectKind, Verb};
use model::deployment::Spec;
use model::{DeploymentId, deployment, name};
use serde::Deserialize;
use store::deployment::{Change, Filter};
use utoipa::IntoParams;
use wire::deployment::{Deployment, DeploymentChange, NewDeployment, ReplicaStatus};
use wire::event::EventList;
use wire::explain::DryRun;

use super::explain::dry_run_placement;
use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::etag::{IfMatch, etag};
use crate::idempotency::{IdempotencyKey, WithSealedEnv};
use crate::page::{List, PageQuery, Query, flag, id, id_field, number};
use crate::{App, Problem};

fn checked(new: NewDeployment) -> Result<deployment::NewDeployment, Problem> {
    let pinned_to = new.cluster_id.as_deref().map(|text| id("cluster", text)).transpose()?;
    let spec = Spec {
        image: new.image,
        resources: new.resources,
        replicas: new.replicas.unwrap_or(1),
        env: new.env,
        command: new.command,
        ports: new.ports,
        restart: new.restart.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
        run_for: new.run_for,
        node_selector: new.node_selector,
        anti_affinity: new.anti_affinity,
        ..Spec::default()
    };
    let (name, priority, labels) = (new.name, new.priority, new.labels);
    Ok(deployment::NewDeployment { name, pinned_to, spec, priority, labels }.check("resources")?)
}

/// Filter for deployments.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeploymentFilter {
    /// Filters by cluster: deployments that run on it or are pinned to it.
    cluster_id: Option<String>,
    /// Filters by status.
    status: Option<String>,
    /// Filters by name.
    name: Option<String>,
}

/// Creates a deployment.
///
/// The deployment starts as soon as capacity is free: follow its status.
#[utoipa::path(post, path = "/api/v1/deployments", tag = "deployments", request_body = NewDeployment,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once"), CreateQuery),
    responses((status = 201, body = Deployment, description = "Created"),
        (status = 200, body = DryRun, description = "Result of the dry run (`dry_run=true`)"), Problem))]
pub(crate) async fn deployment_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    Query(query): Query<CreateQuery>,
    Json(new): Json<NewDeployment>,
) -> Result<Response, Problem> {
    let new = checked(new)?;
    if flag("dry_run", query.dry_run.as_deref())? {
        return Ok(Answer(dry_run_placement(&app, &caller, &new).await?).into_response());
    }
    let (id, env) = (app.db.id(), new.spec.env.clone());
    let new = with_encrypted_env(&app, id, new).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(stored) = key.stored(&mut tx, &caller).await? {
        drop(tx);
        return key.replayed_with_env(&app, stored).await;
    }
    let (owner, limits) = (caller.user.organization_id, app.settings.limits);
    let created = store::deployment::create_as(&mut tx, id, owner, &new, limits).await?;
    let (generation, sealed) = (created.generation, created.spec.sealed_env.clone());
    let shown = Deployment { env, ..created.into() };
    let stored = WithSealedEnv::new(&shown, id, sealed);
    key.finish_with_env(&app, tx, &caller, &stored, &shown, etag(generation)).await
}

/// Encrypts the environment variables of a new deployment before it is stored.
pub(crate) async fn with_encrypted_env(
    app: &App,
    id: DeploymentId,
    mut new: deployment::NewDeployment,
) -> Result<deployment::NewDeployment, Problem> {
    let encrypted = engine::secrets::encrypt_env(&*app.seal, id, &mut new.spec).await;
    encrypted.map_err(|fault| {
        tracing::warn!(deployment = %id, %fault, "encrypting environment variables failed");
        Problem::unavailable("Secret encryption backend unavailable; try again.")
    })?;
    Ok(new)
}

/// The response for a deployment, with its environment variables if the caller may read them.
pub(crate) async fn response(
    app: &App,
    caller: &Caller,
    mut found: deployment::Deployment,
) -> Deployment {
    if caller.allows(Action::new(SubjectKind::Deployment, Verb::Reveal)) {
        engine::secrets::decrypt_env(&*app.seal, &mut found).await;
    } else {
        engine::secrets::hide_env(&mut found);
    }
    found.into()
}

/// The response for several deployments.
pub(crate) async fn responses(
    app: &App,
    caller: &Caller,
    found: Vec<deployment::Deployment>,
) -> Vec<Deployment> {
    let mut shown = Vec::with_capacity(found.len());
    for deployment in found {
        shown.push(response(app, caller, deployment).await);
    }
    shown
}

/// Creation options.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CreateQuery {
    /// Whether to return only the placement result, without creating the deployment.
    #[param(value_type = Option<bool>)]
    dry_run: Option<String>,
}

/// Lists the organization's deployments.
#[utoipa::path(get, path = "/api/v1/deployments", tag = "deployments", params(DeploymentFilter, PageQuery),
    responses((status = 200, body = List<Deployment>, description = "A page of the list"), Problem))]
pub(crate) async fn deployment_list(
    Call(app, caller): Call,
    Query(filter): Query<DeploymentFilter>,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Deployment>>, Problem> {
    let page = paging.page()?;
    let cluster = filter.cluster_id.map(|text| id_field("cluster_id", &text)).transpose()?;
    let status = filter.status.as_deref().map(str::parse).transpose()?;
    let filter = Filter { name: filter.name, cluster, status, ..Filter::default() };
    let found =
        store::deployment::list(&mut app.db.read().await?, caller.scope(), &filter, &page).await?;
    let items = responses(&app, &caller, found).await;
    Ok(Answer(List::new(items, &page, |d| d.id.to_string())))
}

/// Returns a deployment with its replicas.
#[utoipa::path(get, path = "/api/v1/deployments/{id}", tag = "deployments",
    params(("id" = String, Path, description = "Deployment ID")),
    responses((status = 200, body = Deployment, description = "The deployment"), Problem))]
pub(crate) async fn deployment_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("deployment", &text)?;
    let mut read = app.db.read().await?;
    let found = store::deployment::get(&mut read, caller.scope(), id).await?;
    let replicas = store::deployment::replica::list(&mut read, id).await?;
    let replica_statuses = Some(replicas.into_iter().map(ReplicaStatus::from).collect());
    drop(read);
    let tag = etag(found.generation);
    Ok((tag, Answer(Deployment { replica_statuses, ..response(&app, &caller, found).await })))
}

/// Updates a deployment's name, priority, labels or number of replicas.
#[utoipa::path(patch, path = "/api/v1/deployments/{id}", tag = "deployments",
    params(("id" = String, Path, description = "Deployment ID"),
        ("If-Match" = Option<String>, Header, description = "ETag; the update fails if it does not match")),
    request_body = DeploymentChange,
    responses((status = 200, body = Deployment, description = "Updated"), Problem))]
pub(crate) async fn deployment_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    if_match: IfMatch,
    Json(change): Json<DeploymentChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("deployment", &text)?;
    let name = change.name.as_deref().map(|text| name::line("name", text, 100)).transpose()?;
    change.priority.map(deployment::check_priority).transpose()?;
    change.replicas.map(deployment::check_replicas).transpose()?;
    change.labels.as_ref().map(|labels| name::labels("labels", labels)).transpose()?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::deployment::get(&mut tx, caller.scope(), id).await?;
    must_not_belong_to_instance(&found)?;
    if_match.check(found.generation)?;
    // What exceeds a lowered ceiling stays, and can be changed otherwise.
    if let Some(priority) = change.priority.filter(|new| *new != found.priority) {
        let (owner, ceiling) = (found.organization_id, app.settings.limits.max_priority);
        store::organization::check_priority(&mut tx, owner, priority, ceiling).await?;
    }
    let (priority, replicas) = (change.priority, change.replicas);
    let change = Change { name, priority, labels: change.labels, replicas };
    let changed = store::deployment::set(&mut tx, id, &change).await?;
    tx.commit().await?;
    Ok((etag(changed.generation), Answer(response(&app, &caller, changed).await)))
}

/// Deletes a deployment.
///
/// Running replicas are stopped first: follow the status.
#[utoipa::path(delete, path = "/api/v1/deployments/{id}", tag = "deployments",
    params(("id" = String, Path, description = "Deployment ID")),
    responses((status = 202, body = Deployment, description = "Deletion accepted"), Problem))]
pub(crate) async fn deployment_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<Deployment>), Problem> {
    let id = id("deployment", &text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    must_not_belong_to_instance(&store::deployment::get(&mut tx, caller.scope(), id).await?)?;
    let deleting = store::deployment::request_delete(&mut tx, caller.scope(), id).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(response(&app, &caller, deleting).await)))
}

/// Fails for a deployment that belongs to an instance: it changes only with the instance.
pub(crate) fn must_not_belong_to_instance(found: &deployment::Deployment) -> Result<(), Problem> {
    let Some(instance) = found.instance_id else { return Ok(()) };
    Err(Problem::conflict(format!(
        "Deployment {} belongs to instance {instance}; change or delete the instance.",
        found.id
    )))
}

/// Lists the events of a deployment, oldest first, also after its deletion.
#[utoipa::path(get, path = "/api/v1/deployments/{id}/history", tag = "deployments",
    params(("id" = String, Path, description = "Deployment ID"),
        ("limit" = Option<i64>, Query, description = "Page size"),
        ("after" = Option<i64>, Query, description = "Last `seq` of the previous page")),
    responses((status = 200, body = EventList, description = "A page of the list"), Problem))]
pub(crate) async fn deployment_history(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Result<Answer<EventList>, Problem> {
    let id: DeploymentId = id("deployment", &text)?;
    let limit = number("limit", query.get("limit").map(String::as_str), 100, 1, 1000)?;
    let after = number("after", query.get("after").map(String::as_str), 0, 0, i64::MAX)?;
    app.db.number_events().await?;
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
