//! Resources of environments.

pub(crate) mod logs;
pub(crate) mod shape;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::resource::Status;
use model::{environment, name, resource};
use store::{Read, Scope};
use wire::resource::{AdoptRequest, Resource};

use super::environment::{adoption, locked};
use crate::Problem;
use crate::body::Json;
use crate::caller::Call;
use crate::page::{List, PageQuery, Query, id};

/// Lists the resources of all environments.
#[utoipa::path(get, path = "/api/v1/resources", tag = "resources", params(PageQuery),
    responses((status = 200, body = List<Resource>, description = "A page of the list"), Problem))]
pub(crate) async fn resource_list(
    Call(app, caller): Call,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Resource>>, Problem> {
    let page = paging.page()?;
    let found = store::resource::list(&mut app.db.read().await?, caller.scope(), &page).await?;
    let items = found.into_iter().map(Resource::from).collect();
    Ok(Answer(List::new(items, &page, |resource| resource.id.to_string())))
}

/// Returns a resource.
#[utoipa::path(get, path = "/api/v1/resources/{id}", tag = "resources",
    params(("id" = String, Path, description = "Resource ID")),
    responses((status = 200, body = Resource, description = "The resource"), Problem))]
pub(crate) async fn resource_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Resource>, Problem> {
    let id = id("resource", &text)?;
    let mut read = app.db.read().await?;
    let found = store::resource::get(&mut read, caller.scope(), id).await?;
    Ok(Answer(shape::with_input(&mut read, found).await?))
}

/// Returns a resource of an environment by name.
#[utoipa::path(get, path = "/api/v1/environments/{id}/resources/{name}", tag = "resources",
    params(("id" = String, Path, description = "Environment ID"),
        ("name" = String, Path, description = "Resource name")),
    responses((status = 200, body = Resource, description = "The resource"), Problem))]
pub(crate) async fn environment_resource(
    Call(app, caller): Call,
    Path((text, name)): Path<(String, String)>,
) -> Result<Answer<Resource>, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let environment = store::environment::get(&mut read, caller.scope(), id).await?;
    let found = named(&mut read, &environment, &name).await?;
    Ok(Answer(shape::with_input(&mut read, found).await?))
}

/// Returns the resource with this name, including destroyed ones.
async fn named(
    read: &mut Read,
    environment: &environment::Environment,
    text: &str,
) -> Result<resource::Resource, Problem> {
    // An invalid name is not found.
    name::dns_label("name", text).map_err(|_| Problem::not_found("resource", text))?;
    Ok(store::resource::by_name(read, Scope::All, environment.id, text).await?)
}

/// Adopts an existing object as a resource that is not created yet.
#[utoipa::path(post, path = "/api/v1/environments/{id}/resources/{name}/adopt", tag = "resources",
    params(("id" = String, Path, description = "Environment ID"),
        ("name" = String, Path, description = "Resource name")),
    request_body = AdoptRequest,
    responses((status = 202, body = Resource, description = "Adoption accepted"), Problem))]
pub(crate) async fn resource_adopt(
    Call(app, caller): Call,
    Path((text, resource)): Path<(String, String)>,
    Json(request): Json<AdoptRequest>,
) -> Result<(StatusCode, Answer<Resource>), Problem> {
    let object = name::line("what", &request.what, 1024)?;
    let (mut tx, environment) = locked(&app, &caller, &text).await?;
    let adopting = named(&mut tx, &environment, &resource).await?;
    if adopting.status == Status::Destroyed {
        return Err(Problem::not_found("resource", &resource));
    }
    adoption::must_be_allowed_for(&app, &caller, &adopting)?;
    let adopting = engine::environment::adopt(&mut tx, &environment, adopting, &object).await?;
    let response = shape::with_input(&mut tx, adopting).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Answer(response)))
}
