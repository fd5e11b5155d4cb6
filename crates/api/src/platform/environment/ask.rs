//! What users ask of environments that are there. It is written down here and carried out by workers.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use engine::environment as asking;
use engine::environment::Change;
use model::{Time, environment, name};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use store::Tx;
use utoipa::ToSchema;

use super::shape::Environment;
use super::taken;
use super::wish::{self, Life};
use crate::body::{Json, OptionalJson};
use crate::caller::Caller;
use crate::{App, Problem};

type Accepted<T> = (StatusCode, Answer<T>);

/// What of an environment shall change.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AppliedChange)]
pub(crate) struct Wanted {
    /// The templates that it shall be made from, if others.
    templates: Option<Vec<String>>,
    /// What is set anew; null takes the default again. What is not named stays.
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: Map<String, Value>,
    /// All its tags from now on, if others.
    tags: Option<BTreeMap<String, String>>,
    /// What it is for, if something else.
    description: Option<String>,
    /// When it shall be destroyed (RFC 3339), if at another time.
    destroy_at: Option<String>,
    /// The same, from now on; give one of them.
    #[schema(value_type = Option<Life>)]
    ttl: Option<Value>,
    /// What is done when a resource is not as it was made, if something else: `report` or `repair`.
    on_drift: Option<String>,
    /// What exists already and shall be taken over: by resource, as its executor names it. Only what is
    /// not made yet can take something over.
    #[serde(default)]
    adopt: BTreeMap<String, String>,
    /// The plan that was seen; another one is refused.
    plan_hash: Option<String>,
}

impl Wanted {
    /// What shall change, and the plan that was seen.
    fn checked(self, now: Time) -> Result<(Change, Option<String>), Problem> {
        self.tags.as_ref().map(|tags| name::labels("tags", tags)).transpose()?;
        wish::adoptions(&self.adopt)?;
        let change = Change {
            templates: self.templates,
            parameters: self.parameters,
            description: self.description.as_deref().map(wish::description).transpose()?,
            tags: self.tags,
            on_drift: self.on_drift.as_deref().map(wish::on_drift).transpose()?,
            destroy_at: wish::end(self.ttl.as_ref(), self.destroy_at.as_deref(), now)?,
            adopt: self.adopt,
        };
        Ok((change, self.plan_hash))
    }
}

/// Has an environment be changed: all that is said, or nothing.
///
/// With `plan_hash` it is refused if the world has moved since that plan.
#[utoipa::path(post, path = "/api/v1/environments/{id}/apply", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Option<Wanted>,
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_apply(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    OptionalJson(wanted): OptionalJson<Wanted>,
) -> Result<Accepted<Environment>, Problem> {
    let (change, hash) = wanted.checked(app.db.now())?;
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::apply(&mut tx, &mut now, &change, hash.as_deref()).await?;
    accepted(tx, now).await
}

/// Until when an environment shall live.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extension {
    /// For how long, from now on.
    #[schema(value_type = Option<Life>)]
    ttl: Option<Value>,
    /// Until when (RFC 3339); null means that nothing is planned.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, format = DateTime)]
    destroy_at: Option<End>,
}

/// An end that was given, which may be none.
struct End(Option<String>);

/// Tells null from nothing.
fn given<'de, D: Deserializer<'de>>(d: D) -> Result<Option<End>, D::Error> {
    Ok(Some(End(Option::deserialize(d)?)))
}

/// Sets when an environment shall be destroyed: after `ttl`, at `destroy_at`, or never (`destroy_at: null`).
#[utoipa::path(post, path = "/api/v1/environments/{id}/extend", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Extension,
    responses((status = 200, body = Environment, description = "Set"), Problem))]
pub(crate) async fn environment_extend(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    Json(wanted): Json<Extension>,
) -> Result<Answer<Environment>, Problem> {
    if wanted.ttl.is_none() && wanted.destroy_at.is_none() {
        return Err(Problem::field("ttl", "give ttl, or destroy_at (null means never)"));
    }
    let at = wanted.destroy_at.and_then(|end| end.0);
    let end = wish::end(wanted.ttl.as_ref(), at.as_deref(), app.db.now())?;
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::set_destroy_at(&mut tx, &mut now, end).await?;
    let shown = Environment::long(&mut tx, now).await?;
    tx.commit().await?;
    Ok(Answer(shown))
}

/// Goes on with what failed.
#[utoipa::path(post, path = "/api/v1/environments/{id}/retry", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_retry(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::retry(&mut tx, &mut now).await?;
    accepted(tx, now).await
}

/// Has what goes on be stopped. It is over when the environment has failed.
#[utoipa::path(post, path = "/api/v1/environments/{id}/cancel", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_cancel(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::cancel(&mut tx, &mut now).await?;
    accepted(tx, now).await
}

/// Has all resources be looked at now, whether they are as they were made.
#[utoipa::path(post, path = "/api/v1/environments/{id}/observe", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way"), Problem))]
pub(crate) async fn environment_observe(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, now) = taken(&app, &caller, &text).await?;
    asking::observe(&mut tx, &now).await?;
    accepted(tx, now).await
}

/// What shall be mended.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repair {
    /// Only these resources, by name; all that have drifted if it is left out.
    resources: Option<Vec<String>>,
}

/// What is being mended.
#[derive(Serialize, ToSchema)]
pub(crate) struct Repaired {
    /// The environment.
    environment: Environment,
    /// The resources that are mended, by name.
    repaired: Vec<String>,
}

/// Mends resources that are not as they were made.
#[utoipa::path(post, path = "/api/v1/environments/{id}/repair", tag = "environments",
    params(("id" = String, Path, description = "Its id")), request_body = Option<Repair>,
    responses((status = 202, body = Repaired, description = "On its way"), Problem))]
pub(crate) async fn environment_repair(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    OptionalJson(wanted): OptionalJson<Repair>,
) -> Result<Accepted<Repaired>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    let repaired = asking::repair(&mut tx, &mut now, wanted.resources.as_deref()).await?;
    let (status, Answer(environment)) = accepted(tx, now).await?;
    Ok((status, Answer(Repaired { environment, repaired })))
}

/// Has an environment be destroyed, with all that was made for it.
#[utoipa::path(delete, path = "/api/v1/environments/{id}", tag = "environments",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = Environment, description = "On its way out"), Problem))]
pub(crate) async fn environment_destroy(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Accepted<Environment>, Problem> {
    let (mut tx, mut now) = taken(&app, &caller, &text).await?;
    asking::destroy(&mut tx, &mut now, "Its destruction was asked for.").await?;
    accepted(tx, now).await
}

async fn accepted(
    mut tx: Tx,
    now: environment::Environment,
) -> Result<Accepted<Environment>, Problem> {
    let shown = Environment::long(&mut tx, now).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(shown)))
}
