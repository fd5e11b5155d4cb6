//! Resources of environments.

pub(crate) mod logs;
pub(crate) mod shape;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::resource::Status;
use model::{environment, name, resource};
use store::{Read, Scope};
use wire::resource::{Adoption, Resource};

use super::environment::taken;
use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::page::{List, Query, Slice, id};

/// Lists the resources of all environments.
#[utoipa::path(get, path = "/api/v1/resources", tag = "resources", params(Slice),
    responses((status = 200, body = List<Resource>, description = "A part of the list"), Problem))]
pub(crate) async fn resource_list(
    Call(app, caller): Call,
    Query(slice): Query<Slice>,
) -> Result<Answer<List<Resource>>, Problem> {
    let page = slice.page()?;
    let found = store::resource::list(&mut app.db.read().await?, caller.scope(), &page).await?;
    let items = found.into_iter().map(Resource::from).collect();
    Ok(Answer(List::new(items, &page, |one| one.id.to_string())))
}

/// One resource.
#[utoipa::path(get, path = "/api/v1/resources/{id}", tag = "resources",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Resource, description = "The resource"), Problem))]
pub(crate) async fn resource_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Resource>, Problem> {
    let id = id("resource", &text)?;
    let mut read = app.db.read().await?;
    let found = store::resource::get(&mut read, caller.scope(), id).await?;
    Ok(Answer(shape::long(&mut read, found).await?))
}

/// A resource of an environment, by its name.
#[utoipa::path(get, path = "/api/v1/environments/{id}/resources/{name}", tag = "resources",
    params(("id" = String, Path, description = "The environment's id"),
        ("name" = String, Path, description = "The resource's name")),
    responses((status = 200, body = Resource, description = "The resource"), Problem))]
pub(crate) async fn environment_resource(
    Call(app, caller): Call,
    Path((text, name)): Path<(String, String)>,
) -> Result<Answer<Resource>, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let of = store::environment::get(&mut read, caller.scope(), id).await?;
    let found = named(&mut read, &of, &name).await?;
    Ok(Answer(shape::long(&mut read, found).await?))
}

/// The resource of that name, also one that is gone.
async fn named(
    read: &mut Read,
    of: &environment::Environment,
    text: &str,
) -> Result<resource::Resource, Problem> {
    // What can't be a name names nothing.
    name::dns_label("name", text).map_err(|_| Problem::not_found("resource", text))?;
    Ok(store::resource::by_name(read, Scope::All, of.id, text).await?)
}

/// Has a resource that is not made yet take over what exists.
#[utoipa::path(post, path = "/api/v1/environments/{id}/resources/{name}/adopt", tag = "resources",
    params(("id" = String, Path, description = "The environment's id"),
        ("name" = String, Path, description = "The resource's name")),
    request_body = Adoption,
    responses((status = 202, body = Resource, description = "Noted"), Problem))]
pub(crate) async fn resource_adopt(
    Call(app, caller): Call,
    Path((text, resource)): Path<(String, String)>,
    Json(wanted): Json<Adoption>,
) -> Result<(StatusCode, Answer<Resource>), Problem> {
    let what = name::line("what", &wanted.what, 1024)?;
    let (mut tx, of) = taken(&app, &caller, &text).await?;
    let one = named(&mut tx, &of, &resource).await?;
    if one.status == Status::Destroyed {
        return Err(Problem::not_found("resource", &resource));
    }
    let one = engine::environment::adopt(&mut tx, &of, one, &what).await?;
    let shown = shape::long(&mut tx, one).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(shown)))
}
