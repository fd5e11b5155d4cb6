//! Templates: published under `name@version`, and never changed from then on.

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
use store::{Read, Tx};
use utoipa::IntoParams;
use wire::template::{Deprecation, File, Template};

use crate::body::Json;
use crate::caller::{Call, Caller};
use crate::page::{List, Query, Slice};
use crate::{App, Problem};

/// Which templates are wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TemplateFilter {
    /// Only those of this name.
    name: Option<String>,
}

/// Lists the organization's templates and the shared ones, without what they say.
#[utoipa::path(get, path = "/api/v1/templates", tag = "templates", params(TemplateFilter, Slice),
    responses((status = 200, body = List<Template>, description = "A part of the list"), Problem))]
pub(crate) async fn template_list(
    Call(app, caller): Call,
    Query(filter): Query<TemplateFilter>,
    Query(slice): Query<Slice>,
) -> Result<Answer<List<Template>>, Problem> {
    let page = slice.page()?;
    let filter = Filter { name: filter.name, version: None };
    let found =
        store::template::list(&mut app.db.read().await?, caller.scope(), &filter, &page).await?;
    let items = found.into_iter().map(Template::from).collect();
    Ok(Answer(List::new(items, &page, |one| one.id.to_string())))
}

/// One template: `name@version`, or `name` alone for its newest version that is not deprecated.
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

/// The text of a template as it was published, in YAML or JSON.
#[utoipa::path(get, path = "/api/v1/templates/{reference}/source", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`, or `name`")),
    responses((status = 200, description = "The text",
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

/// Deprecates a template: what is made from it stays, nothing new is made from it.
#[utoipa::path(post, path = "/api/v1/templates/{reference}/deprecate", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`")), request_body = Deprecation,
    responses((status = 200, body = Template, description = "Deprecated"), Problem))]
pub(crate) async fn template_deprecate(
    Call(app, caller): Call,
    Path(text): Path<String>,
    Json(wanted): Json<Deprecation>,
) -> Result<Answer<Template>, Problem> {
    let why = name::line("why", &wanted.why, 500)?;
    set_deprecated(&app, &caller, &text, Some(&why)).await
}

/// Takes back that a template is deprecated.
#[utoipa::path(delete, path = "/api/v1/templates/{reference}/deprecate", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`")),
    responses((status = 200, body = Template, description = "Taken back"), Problem))]
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
    let now = store::template::set_deprecated(&mut tx, found, why).await?;
    let shown = complete(&mut tx, now).await?;
    tx.commit().await?;
    Ok(Answer(shown))
}

/// A template with what it says, and its files' names.
async fn complete(read: &mut Read, of: Published) -> store::Result<Template> {
    let files = store::template::file_sizes(read, of.id).await?.into_iter();
    let files = files.map(|(path, size_bytes)| File { path, size_bytes });
    Ok(Template::complete(of, files.collect()))
}

/// Deletes a template; not while environments are made from it.
#[utoipa::path(delete, path = "/api/v1/templates/{reference}", tag = "templates",
    params(("reference" = String, Path, description = "`name@version`")),
    responses((status = 204, description = "Gone"), Problem))]
pub(crate) async fn template_delete(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<StatusCode, Problem> {
    let (mut tx, found) = changeable(&app, &caller, &text).await?;
    store::template::delete(&mut tx, &found).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The template that a reference means: `name@version`, or `name` for its newest version that is not
/// deprecated.
async fn find(read: &mut Read, caller: &Caller, text: &str) -> Result<Published, Problem> {
    if text.contains('@') {
        let (name, version) =
            parse_reference("reference", text).map_err(|_| Problem::not_found("template", text))?;
        return of_version(read, caller, &name, &version).await;
    }
    let all = versions(read, caller, text).await?;
    let usable = all.into_iter().filter(|one| !one.is_deprecated);
    let newest = usable.max_by(|a, b| compare_versions(&a.version, &b.version));
    let newest = newest.ok_or_else(|| {
        let detail = format!("All versions of {text} are deprecated; name one, like {text}@1.0.0.");
        Problem::new(StatusCode::NOT_FOUND, detail)
    })?;
    Ok(store::template::by_id(read, newest.id).await?)
}

/// All versions of a name that the caller may see; 404 if there is none.
async fn versions(
    read: &mut Read,
    caller: &Caller,
    text: &str,
) -> Result<Vec<store::template::Version>, Problem> {
    let nothing = || Problem::not_found("template", text);
    name::dns_label("name", text).map_err(|_| nothing())?;
    let mut all = store::template::versions(read, caller.own(), text).await?;
    if all.is_empty() && caller.is_admin() {
        all = store::template::versions(read, caller.scope(), text).await?;
    }
    if all.is_empty() {
        return Err(nothing());
    }
    Ok(all)
}

/// That version: the caller's own, the shared one, or for the administrator that of anybody.
async fn of_version(
    read: &mut Read,
    caller: &Caller,
    name: &str,
    version: &str,
) -> Result<Published, Problem> {
    match store::template::get(read, caller.own(), name, version).await {
        Err(store::Error::NotFound { .. }) if caller.is_admin() => {
            Ok(store::template::get(read, caller.scope(), name, version).await?)
        }
        other => Ok(other?),
    }
}

/// A transaction, and the very version in it that the caller may change.
async fn changeable(app: &App, caller: &Caller, text: &str) -> Result<(Tx, Published), Problem> {
    let mut tx = app.db.begin(caller.actor()).await?;
    if !text.contains('@') {
        versions(&mut tx, caller, text).await?;
        let rule = "must name the version, too, like web-shop@1.4.0";
        return Err(Problem::field("reference", rule));
    }
    let found = find(&mut tx, caller, text).await?;
    if found.organization_id.is_none() && !caller.is_admin() {
        let reference = found.reference();
        return Err(Problem::forbidden(format!(
            "The template {reference} is shared by all; only the platform administrator may change it."
        )));
    }
    Ok((tx, found))
}
