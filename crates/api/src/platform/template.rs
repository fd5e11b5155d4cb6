//! Templates: published under `name@version` and immutable.

pub(crate) mod archive;
pub(crate) mod compare;
pub(crate) mod publish;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::name;
use model::template::{compare_versions, parse_reference};
use serde::{Deserialize, de};
use store::template::{Filter, Published};
use store::{Read, Scope, Tx};
use utoipa::IntoParams;
use wire::template::{Deprecation, File, Template};

use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::page::{List, PageQuery, Query};
use crate::{App, Problem};

/// Filter for templates.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TemplateFilter {
    /// Filters by name.
    name: Option<String>,
}

/// Lists the organization's templates and the shared ones, without their content.
#[utoipa::path(get, path = "/api/v1/templates", tag = "templates", params(TemplateFilter, PageQuery),
    responses((status = 200, body = List<Template>, description = "A page of the list"), Problem))]
pub(crate) async fn template_list(
    Call(app, caller): Call,
    Query(filter): Query<TemplateFilter>,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Template>>, Problem> {
    let page = paging.page()?;
    let filter = Filter { name: filter.name, version: None };
    let found =
        store::template::list(&mut app.db.read().await?, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Template::from).collect();
    Ok(Answer(List::new(items, &page, |template| template.id.to_string())))
}

/// Returns a template: `name@version`, or `name` for its newest version that is not deprecated.
#[utoipa::path(get, path = "/api/v1/templates/{reference}", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`, or `name`")),
    responses((status = 200, body = Template, description = "The template"), Problem))]
pub(crate) async fn template_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Template>, Problem> {
    let mut read = app.db.read().await?;
    let found = find(&mut read, &caller, &text).await?;
    Ok(Answer(complete(&mut read, found).await?))
}

/// Returns the source of a template as it was published, in YAML or JSON.
#[utoipa::path(get, path = "/api/v1/templates/{reference}/source", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`, or `name`")),
    responses((status = 200, description = "Source",
        content((String = "application/yaml"), (Object = "application/json"))), Problem))]
pub(crate) async fn template_source(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let mut read = app.db.read().await?;
    let found = find(&mut read, &caller, &text).await?;
    let source = store::template::source(&mut read, found.id).await?;
    let is_json = serde_json::from_str::<de::IgnoredAny>(&source).is_ok();
    let kind = if is_json { "application/json" } else { "application/yaml" };
    Ok(([(header::CONTENT_TYPE, kind)], source).into_response())
}

/// Deprecates a template: existing environments keep it, new ones cannot use it.
#[utoipa::path(post, path = "/api/v1/templates/{reference}/deprecate", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`")), request_body = Deprecation,
    responses((status = 200, body = Template, description = "Deprecated"), Problem))]
pub(crate) async fn template_deprecate(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(request): Json<Deprecation>,
) -> Result<Answer<Template>, Problem> {
    let why = name::line("why", &request.why, 500)?;
    set_deprecated(&app, &caller, &text, Some(&why)).await
}

/// Removes the deprecation of a template.
#[utoipa::path(delete, path = "/api/v1/templates/{reference}/deprecate", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`")),
    responses((status = 200, body = Template, description = "Deprecation removed"), Problem))]
pub(crate) async fn template_restore(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<Answer<Template>, Problem> {
    set_deprecated(&app, &caller, &text, None).await
}

async fn set_deprecated(
    app: &App,
    caller: &Caller,
    text: &str,
    why: Option<&str>,
) -> Result<Answer<Template>, Problem> {
    let (mut tx, found) = changeable(app, caller, text).await?;
    let template = store::template::set_deprecated(&mut tx, found, why).await?;
    let response = complete(&mut tx, template).await?;
    tx.commit().await?;
    Ok(Answer(response))
}

/// Converts a template with its content and file names.
async fn complete(read: &mut Read, published: Published) -> store::Result<Template> {
    let files = store::template::file_sizes(read, published.id).await?.into_iter();
    let files = files.map(|(path, size_bytes)| File { path, size_bytes });
    Ok(Template::complete(published, files.collect()))
}

/// Deletes a template. Fails while environments use it.
#[utoipa::path(delete, path = "/api/v1/templates/{reference}", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`")),
    responses((status = 204, description = "Deleted"), Problem))]
pub(crate) async fn template_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    store::template::delete(&mut tx, &found).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the template of a reference: `name@version`, or `name` for its newest version that is
/// not deprecated.
async fn find(read: &mut Read, caller: &Caller, text: &str) -> Result<Published, Problem> {
    if text.contains('@') {
        let (name, version) =
            parse_reference("reference", text).map_err(|_| Problem::not_found("template", text))?;
        return by_version(read, caller, &name, &version).await;
    }
    let all = versions(read, caller, text).await?;
    let active = all.into_iter().filter(|version| !version.is_deprecated);
    let newest = active.max_by(|a, b| compare_versions(&a.version, &b.version));
    let newest = newest.ok_or_else(|| {
        let detail =
            format!("All versions of {text} are deprecated; specify one, such as {text}@1.0.0.");
        Problem::new(StatusCode::NOT_FOUND, detail)
    })?;
    Ok(store::template::by_id(read, newest.id).await?)
}

/// Returns all versions of a name that the caller may see; 404 if there are none.
async fn versions(
    read: &mut Read,
    caller: &Caller,
    text: &str,
) -> Result<Vec<store::template::Version>, Problem> {
    let not_found = || Problem::not_found("template", text);
    name::dns_label("name", text).map_err(|_| not_found())?;
    let mut all = store::template::versions(read, caller.own(), text).await?;
    if all.is_empty() && caller.scope() == Scope::All {
        all = store::template::versions(read, caller.scope(), text).await?;
    }
    if all.is_empty() {
        return Err(not_found());
    }
    Ok(all)
}

/// Returns a version: the caller's own, the shared one, or any organization's for the
/// administrator.
async fn by_version(
    read: &mut Read,
    caller: &Caller,
    name: &str,
    version: &str,
) -> Result<Published, Problem> {
    match store::template::get(read, caller.own(), name, version).await {
        Err(store::Error::NotFound { .. }) if caller.scope() == Scope::All => {
            Ok(store::template::get(read, caller.scope(), name, version).await?)
        }
        other => Ok(other?),
    }
}

/// Begins a transaction and reads a template version that the caller may change.
async fn changeable(app: &App, caller: &Caller, text: &str) -> Result<(Tx, Published), Problem> {
    let mut tx = app.db.begin(caller.actor()).await?;
    if !text.contains('@') {
        versions(&mut tx, caller, text).await?;
        let rule = "must include the version, such as web-shop@1.4.0";
        return Err(Problem::field("reference", rule));
    }
    let found = find(&mut tx, caller, text).await?;
    if found.organization_id.is_none() && !caller.is_admin() {
        let reference = found.reference();
        return Err(Problem::forbidden(format!(
            "Template {reference} is shared by all organizations; only the platform administrator may change it."
        )));
    }
    Ok((tx, found))
}
