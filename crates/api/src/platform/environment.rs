//! Environments: create, list, read and update.

pub(crate) mod adoption;
pub(crate) mod alias;
pub(crate) mod command;
pub(crate) mod drift;
pub(crate) mod plan;
mod shape;
pub(crate) mod spec;

use axum::Json as Answer;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use model::environment::{self, Status};
use model::name;
use serde::Deserialize;
use store::Tx;
use store::environment::Filter;
use utoipa::IntoParams;
use wire::environment::Environment;
use wire::environment::request::{EnvironmentChange, NewEnvironment};

use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::etag::{IfMatch, etag};
use crate::idempotency::IdempotencyKey;
use crate::page::{List, PageQuery, Query, flag, id};
use crate::{App, Problem};

/// Creates an environment.
///
/// Creation is asynchronous: follow the status.
#[utoipa::path(post, path = "/api/v1/environments", tag = "environments", request_body = NewEnvironment,
    params(("Idempotency-Key" = Option<String>, Header, description = "Key that makes retries safe: the request is executed at most once")),
    responses((status = 202, body = Environment, description = "Accepted"), Problem))]
pub(crate) async fn environment_create(
    Call(app, caller): Call,
    key: IdempotencyKey,
    Json(new): Json<NewEnvironment>,
) -> Result<Response, Problem> {
    let (spec, hash) = spec::named(new, app.db.now())?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = key.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let (owner, user) = (caller.user.organization_id, caller.user.id);
    let created = engine::environment::create(&mut tx, owner, user, &spec, hash.as_deref()).await?;
    adoption::must_be_allowed(&app, &mut tx, &caller, &created, &spec.adopt).await?;
    let generation = created.generation;
    let response = shape::with_resources(&mut tx, created).await?;
    key.accepted().finish(&app, tx, &caller, &response, etag(generation)).await
}

/// Filter for environments.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EnvironmentFilter {
    /// Filters by name.
    name: Option<String>,
    /// Filters by status.
    status: Option<String>,
    /// Whether to include destroyed environments.
    #[param(value_type = Option<bool>)]
    destroyed: Option<String>,
}

impl EnvironmentFilter {
    fn into_filter(self) -> Result<Filter, Problem> {
        let status = self.status.as_deref().map(str::parse).transpose()?;
        let with_destroyed = flag("destroyed", self.destroyed.as_deref())?;
        let with_destroyed = with_destroyed || status == Some(Status::Destroyed);
        Ok(Filter { id: None, name: self.name, status, with_destroyed })
    }
}

/// Lists the organization's environments, without their resources.
#[utoipa::path(get, path = "/api/v1/environments", tag = "environments", params(EnvironmentFilter, PageQuery),
    responses((status = 200, body = List<Environment>, description = "A page of the list"), Problem))]
pub(crate) async fn environment_list(
    Call(app, caller): Call,
    Query(filter): Query<EnvironmentFilter>,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Environment>>, Problem> {
    let (page, filter) = (paging.page()?, filter.into_filter()?);
    let mut read = app.db.read().await?;
    let found = store::environment::list(&mut read, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Environment::from).collect();
    Ok(Answer(List::new(items, &page, |environment| environment.id.to_string())))
}

/// Returns an environment with its resources.
#[utoipa::path(get, path = "/api/v1/environments/{id}", tag = "environments",
    params(("id" = String, Path, description = "Environment ID")),
    responses((status = 200, body = Environment, description = "The environment"), Problem))]
pub(crate) async fn environment_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let found = store::environment::get(&mut read, caller.scope(), id).await?;
    let generation = found.generation;
    let response = shape::with_resources(&mut read, found).await?;
    Ok((etag(generation), Answer(response)).into_response())
}

/// Updates an environment's description, tags or drift policy. Resources are not changed.
#[utoipa::path(patch, path = "/api/v1/environments/{id}", tag = "environments",
    params(("id" = String, Path, description = "Environment ID"),
        ("If-Match" = Option<String>, Header, description = "ETag; the update fails if it does not match")),
    request_body = EnvironmentChange,
    responses((status = 200, body = Environment, description = "Updated"), Problem))]
pub(crate) async fn environment_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    if_match: IfMatch,
    Json(change): Json<EnvironmentChange>,
) -> Result<Response, Problem> {
    let change = checked(change)?;
    let (mut tx, mut environment) = locked(&app, &caller, &text).await?;
    if_match.check(environment.generation)?;
    if environment.status == Status::Destroyed {
        return Err(Problem::conflict(format!("Environment {} is destroyed.", environment.name)));
    }
    apply_change(change, &mut environment);
    store::environment::save(&mut tx, &mut environment, "updated").await?;
    let generation = environment.generation;
    let response = shape::with_resources(&mut tx, environment).await?;
    tx.commit().await?;
    Ok((etag(generation), Answer(response)).into_response())
}

fn checked(change: EnvironmentChange) -> Result<EnvironmentChange, Problem> {
    let description = change.description.as_deref();
    let description = description.map(spec::description).transpose()?;
    change.tags.as_ref().map(|tags| name::labels("tags", tags)).transpose()?;
    change.on_drift.as_deref().map(spec::on_drift).transpose()?;
    Ok(EnvironmentChange { description, ..change })
}

fn apply_change(change: EnvironmentChange, environment: &mut environment::Environment) {
    environment.generation += 1;
    environment.description =
        change.description.unwrap_or_else(|| std::mem::take(&mut environment.description));
    environment.tags = change.tags.unwrap_or_else(|| std::mem::take(&mut environment.tags));
    let on_drift = change.on_drift.and_then(|text| text.parse().ok());
    environment.on_drift = on_drift.unwrap_or(environment.on_drift);
}

/// Begins a transaction and locks an environment in it.
pub(super) async fn locked(
    app: &App,
    caller: &Caller,
    text: &str,
) -> Result<(Tx, environment::Environment), Problem> {
    let id = id("environment", text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let environment = store::environment::lock(&mut tx, caller.scope(), id).await?;
    Ok((tx, environment))
}
