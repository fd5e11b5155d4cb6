//! Environments: asking for them, finding them, changing what users wrote on them.

pub(crate) mod alias;
pub(crate) mod ask;
pub(crate) mod drift;
pub(crate) mod plan;
mod shape;
pub(crate) mod wish;

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
use crate::idempotency::Once;
use crate::page::{List, Query, Slice, flag, id};
use crate::{App, Problem};

/// Asks for an environment. It is made step by step: follow its status.
#[utoipa::path(post, path = "/api/v1/environments", tag = "environments", request_body = NewEnvironment,
    params(("Idempotency-Key" = Option<String>, Header, description = "Acts once, however often it is sent")),
    responses((status = 202, body = Environment, description = "Asked for"), Problem))]
pub(crate) async fn environment_create(
    Call(app, caller): Call,
    once: Once,
    Json(new): Json<NewEnvironment>,
) -> Result<Response, Problem> {
    let (wish, hash) = wish::named(new, app.db.now())?;
    let mut tx = app.db.begin(caller.actor()).await?;
    if let Some(answer) = once.replay(&mut tx, &caller).await? {
        return Ok(answer);
    }
    let (owner, user) = (caller.user.organization_id, caller.user.id);
    let made = engine::environment::create(&mut tx, owner, user, &wish, hash.as_deref()).await?;
    let generation = made.generation;
    let shown = shape::long(&mut tx, made).await?;
    once.accepted().finish(&app, tx, &caller, &shown, etag(generation)).await
}

/// Which environments are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EnvironmentFilter {
    /// Only that of this name.
    name: Option<String>,
    /// Only those in this status.
    status: Option<String>,
    /// `true`: also those that are destroyed.
    #[param(value_type = Option<bool>)]
    destroyed: Option<String>,
}

impl EnvironmentFilter {
    fn checked(self) -> Result<Filter, Problem> {
        let status = self.status.as_deref().map(str::parse).transpose()?;
        let with_destroyed = flag("destroyed", self.destroyed.as_deref())?;
        let with_destroyed = with_destroyed || status == Some(Status::Destroyed);
        Ok(Filter { id: None, name: self.name, status, with_destroyed })
    }
}

/// Lists the organization's environments, without their resources.
#[utoipa::path(get, path = "/api/v1/environments", tag = "environments", params(EnvironmentFilter, Slice),
    responses((status = 200, body = List<Environment>, description = "A part of the list"), Problem))]
pub(crate) async fn environment_list(
    Call(app, caller): Call,
    Query(filter): Query<EnvironmentFilter>,
    Query(slice): Query<Slice>,
) -> Result<Answer<List<Environment>>, Problem> {
    let (page, filter) = (slice.page()?, filter.checked()?);
    let mut read = app.db.read().await?;
    let found = store::environment::list(&mut read, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Environment::from).collect();
    Ok(Answer(List::new(items, &page, |one| one.id.to_string())))
}

/// One environment with its resources.
#[utoipa::path(get, path = "/api/v1/environments/{id}", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Environment, description = "The environment"), Problem))]
pub(crate) async fn environment_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let found = store::environment::get(&mut read, caller.scope(), id).await?;
    let generation = found.generation;
    let shown = shape::long(&mut read, found).await?;
    Ok((etag(generation), Answer(shown)).into_response())
}

/// Changes what users wrote on an environment. Nothing of it is made anew.
#[utoipa::path(patch, path = "/api/v1/environments/{id}", tag = "environments",
    params(("id" = String, Path, description = "Its id"),
        ("If-Match" = Option<String>, Header, description = "Change only this version")),
    request_body = EnvironmentChange,
    responses((status = 200, body = Environment, description = "Changed"), Problem))]
pub(crate) async fn environment_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    seen: IfMatch,
    Json(change): Json<EnvironmentChange>,
) -> Result<Response, Problem> {
    let change = checked(change)?;
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    seen.check(now.generation)?;
    if now.status == Status::Destroyed {
        return Err(Problem::conflict(format!("The environment {} is destroyed.", now.name)));
    }
    put_on(change, &mut now);
    store::environment::save(&mut tx, &mut now, "updated").await?;
    let generation = now.generation;
    let shown = shape::long(&mut tx, now).await?;
    tx.commit().await?;
    Ok((etag(generation), Answer(shown)).into_response())
}

fn checked(change: EnvironmentChange) -> Result<EnvironmentChange, Problem> {
    let description = change.description.as_deref();
    let description = description.map(wish::description).transpose()?;
    change.tags.as_ref().map(|tags| name::labels("tags", tags)).transpose()?;
    change.on_drift.as_deref().map(wish::on_drift).transpose()?;
    Ok(EnvironmentChange { description, ..change })
}

fn put_on(change: EnvironmentChange, now: &mut environment::Environment) {
    now.generation += 1;
    now.description = change.description.unwrap_or_else(|| std::mem::take(&mut now.description));
    now.tags = change.tags.unwrap_or_else(|| std::mem::take(&mut now.tags));
    let on_drift = change.on_drift.and_then(|text| text.parse().ok());
    now.on_drift = on_drift.unwrap_or(now.on_drift);
}

/// A transaction, and an environment in it that nobody else changes meanwhile.
pub(super) async fn taken(
    app: &App,
    caller: &Caller,
    text: &str,
) -> Result<(Tx, environment::Environment), Problem> {
    let id = id("environment", text)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let now = store::environment::take(&mut tx, caller.scope(), id).await?;
    Ok((tx, now))
}
