//! Instances: list, read and delete.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::InstanceId;
use model::kind::Kind;
use model::reason::Requester;
use model::search::{self, Direction, Expr};
use serde::Deserialize;
use store::Scope;
use store::instance::search::{Search, count, list};
use utoipa::IntoParams;

use super::Error;
use super::object::Instance;
use super::tenant::Tenant;
use super::wire::{Async, List, Origin, Paging, Params};
use crate::App;
use crate::caller::Call;
use crate::instance::{lock, may_change};

/// Path of a kind.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the kind reads it")]
pub(crate) struct KindPath {
    /// API of a kind, such as `kafkas_mgmt`.
    api: String,
    /// Plural name of the kind, such as `kafkas`.
    plural: String,
}

/// Path of an instance.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InstancePath {
    /// API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// Plural name of the kind, such as `kafkas`.
    #[serde(rename = "plural")]
    _plural: String,
    /// Instance ID.
    id: String,
}

impl InstancePath {
    /// Parses the ID. An invalid ID is not found.
    pub(super) fn id(&self) -> Result<InstanceId, Error> {
        self.id.parse().map_err(|_| Error::not_found("instance", &self.id))
    }
}

/// Returns the named instance of this kind, if it is in the scope.
pub(super) async fn find(
    app: &App,
    scope: Scope,
    kind: &Kind,
    path: &InstancePath,
) -> Result<model::instance::Instance, Error> {
    let id = path.id()?;
    let found = store::instance::get(&mut app.db.read().await?, scope, id).await?;
    if found.kind == kind.name {
        return Ok(found);
    }
    Err(Error::not_found("instance", &path.id))
}

/// Filter and order of a list of instances.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct InstanceQuery {
    /// Columns with `asc` or `desc`, such as `name desc, created_at`; defaults to `name`.
    #[param(rename = "orderBy")]
    order_by: Option<String>,
    /// Search expression, such as `name = orders and (region like 'eu-%' or owner in (ann, bob))`.
    search: Option<String>,
}

/// Lists the organization's instances.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}", tag = "instances", params(KindPath, Paging, InstanceQuery),
    responses((status = 200, body = List<Instance>, description = "A page of the list"), Error))]
pub(crate) async fn instance_list(
    Call(app, tenant): Call<Tenant>,
    params: Params,
    origin: Origin,
) -> Result<Answer<List<Instance>>, Error> {
    let (kind, page) = (&tenant.kind, params.page()?);
    let (order, expr) = (order(kind, &params)?, expr(kind, &params)?);
    let scope = tenant.caller.own();
    let search = Search { scope, kind: &kind.name, expr: expr.as_ref(), order: &order };
    let mut read = app.db.read().await?;
    let total = count(&mut read, &search).await?;
    let (size, skip) = page.bounds(total);
    let found = list(&mut read, &search, size, skip).await?;
    let items = found.into_iter().map(|instance| Instance::new(kind, &origin, instance)).collect();
    Ok(Answer(List::new(&kind.words.list, items, page, total)))
}

pub(super) fn expr(kind: &Kind, params: &Params) -> Result<Option<Expr>, Error> {
    let Some(text) = params.get("search") else { return Ok(None) };
    let columns: Vec<&str> = kind.offers.search_columns.iter().map(String::as_str).collect();
    search::parse(text, &columns, &kind.offers.search_operators)
        .map_err(|error| Error::new(23, format!("Invalid search expression: {error}.")))
}

/// Parses the order into store columns.
pub(super) fn order(kind: &Kind, params: &Params) -> Result<Vec<(String, Direction)>, Error> {
    let text = params.get("orderBy").unwrap_or_default();
    let mut order = search::order(text, &kind.order_columns())
        .map_err(|error| Error::unreadable(format!("Invalid orderBy: {error}.")))?;
    for (column, _) in &mut order {
        if *column == kind.words.host {
            "host".clone_into(column);
        }
    }
    Ok(order)
}

/// Returns an instance.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}/{id}", tag = "instances", params(InstancePath),
    responses((status = 200, body = Instance, description = "The instance"), Error))]
pub(crate) async fn instance_get(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    origin: Origin,
) -> Result<Answer<Instance>, Error> {
    let found = find(&app, tenant.caller.own(), &tenant.kind, &path).await?;
    Ok(Answer(Instance::new(&tenant.kind, &origin, found)))
}

/// Deletes an instance.
///
/// Deletion is asynchronous: the instance is not found once it is complete.
#[utoipa::path(delete, path = "/api/{api}/v1/{plural}/{id}", tag = "instances",
    params(InstancePath, Async), responses((status = 202, description = "Deletion accepted"), Error))]
pub(crate) async fn instance_delete(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<StatusCode, Error> {
    params.must_be_async()?;
    let (caller, id) = (&tenant.caller, path.id()?);
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = lock(&mut tx, caller.own(), &tenant.kind, id).await?;
    if !may_change(caller, &found) {
        return Err(Error::not_found("instance", &path.id));
    }
    let by = Requester::User { name: caller.user.username.clone() };
    store::instance::request_delete(&mut tx, caller.own(), id, by).await?;
    tx.commit().await?;
    Ok(StatusCode::ACCEPTED)
}
