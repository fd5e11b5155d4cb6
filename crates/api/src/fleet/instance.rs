//! Instances: listing, reading and deleting them.

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use model::InstanceId;
use model::kind::Kind;
use model::reason::By;
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
use crate::instance::{may_change, take};

/// Which kind of which API.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the kind reads it")]
pub(crate) struct KindPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    api: String,
    /// The kind's name for many, such as `kafkas`.
    plural: String,
}

/// Which instance of which kind.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InstancePath {
    /// The API of a kind, such as `kafkas_mgmt`.
    #[serde(rename = "api")]
    _api: String,
    /// The kind's name for many, such as `kafkas`.
    #[serde(rename = "plural")]
    _plural: String,
    /// The instance's id.
    id: String,
}

impl InstancePath {
    /// The id. What is no id names nothing.
    pub(super) fn id(&self) -> Result<InstanceId, Error> {
        self.id.parse().map_err(|_| Error::not_found("instance", &self.id))
    }
}

/// The instance of this kind that is named, if it is in the scope.
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

/// Which instances are wanted, in which order.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct Wants {
    /// Columns and `asc` or `desc`, such as `name desc, created_at`; by name when it is left out.
    #[param(rename = "orderBy")]
    order_by: Option<String>,
    /// Which, such as `name = orders and (region like 'eu-%' or owner in (ann, bob))`.
    search: Option<String>,
}

/// Lists the organization's instances.
#[utoipa::path(get, path = "/api/{api}/v1/{plural}", tag = "instances", params(KindPath, Paging, Wants),
    responses((status = 200, body = List<Instance>, description = "One page"), Error))]
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
    let (size, skip) = page.of(total);
    let found = list(&mut read, &search, size, skip).await?;
    let items = found.into_iter().map(|one| Instance::new(kind, &origin, one)).collect();
    Ok(Answer(List::new(&kind.words.list, items, page, total)))
}

pub(super) fn expr(kind: &Kind, params: &Params) -> Result<Option<Expr>, Error> {
    let Some(text) = params.get("search") else { return Ok(None) };
    let columns: Vec<&str> = kind.offers.search_columns.iter().map(String::as_str).collect();
    search::parse(text, &columns, &kind.offers.search_operators)
        .map_err(|error| Error::new(23, format!("The search can't be read: {error}.")))
}

/// The order, in the store's words.
pub(super) fn order(kind: &Kind, params: &Params) -> Result<Vec<(String, Direction)>, Error> {
    let text = params.get("orderBy").unwrap_or_default();
    let mut order = search::order(text, &kind.order_columns())
        .map_err(|error| Error::unreadable(format!("orderBy can't be read: {error}.")))?;
    for (column, _) in &mut order {
        if *column == kind.words.host {
            "host".clone_into(column);
        }
    }
    Ok(order)
}

/// One instance.
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

/// Deletes an instance. Follow its status: when it is gone, it is not found any more.
#[utoipa::path(delete, path = "/api/{api}/v1/{plural}/{id}", tag = "instances",
    params(InstancePath, Async), responses((status = 202, description = "On its way out"), Error))]
pub(crate) async fn instance_delete(
    Call(app, tenant): Call<Tenant>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<StatusCode, Error> {
    params.must_be_async()?;
    let (caller, id) = (&tenant.caller, path.id()?);
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = take(&mut tx, caller.own(), &tenant.kind, id).await?;
    if !may_change(caller, &found) {
        return Err(Error::not_found("instance", &path.id));
    }
    let by = By::User { name: caller.user.username.clone() };
    store::instance::request_delete(&mut tx, caller.own(), id, by).await?;
    tx.commit().await?;
    Ok(StatusCode::ACCEPTED)
}
