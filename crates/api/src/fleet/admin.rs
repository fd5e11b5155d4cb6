//! Administrator endpoints: the instances of all organizations.
//!
//! A caller is the platform administrator, or has an OIDC token with the kind's role for the
//! method. All others get 404.

pub(crate) mod change;
pub(crate) mod object;

use std::sync::{Arc, OnceLock};

use axum::Json as Answer;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::event::Actor;
use model::kind::Kind;
use model::reason::Requester;
use store::Scope;
use store::instance::search::{Search, count, list};

use super::Error;
use super::instance::{InstancePath, InstanceQuery, KindPath, expr, find, order};
use super::tenant::{ApiKind, parameter};
use super::wire::{Async, List, Origin, Paging, Params};
use crate::caller::{Call, From, authenticate, authorization};
use crate::instance::lock;
use crate::{App, oidc};
use object::AdminInstance;

/// An administrator and the kind whose API is called.
pub(crate) struct Admin {
    /// Kind.
    pub(crate) kind: Arc<Kind>,
    /// Username, for the audit log.
    pub(crate) name: String,
    /// Actor, for events.
    pub(crate) actor: Actor,
}

/// Username of the caller, once it is authenticated.
#[derive(Clone, Default)]
struct Audited(Arc<OnceLock<String>>);

/// Logs every administrator request with its caller and status.
pub(crate) async fn audit(mut request: Request, next: Next) -> Response {
    let caller_name = Audited::default();
    request.extensions_mut().insert(caller_name.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let (name, status) = (caller_name.0.get().map_or("nobody", String::as_str), response.status());
    tracing::info!(audit = true, user = name, %method, path, %status, "administrator request finished");
    response
}

impl FromRequestParts<App> for Admin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let ApiKind(kind) = ApiKind::from_request_parts(parts, app).await?;
        let not_found = Error::path_not_found(parts.uri.path());
        let identity = identify(parts, app, &kind).await.map_err(IntoResponse::into_response)?;
        let plural = parameter(parts, app, "plural").await;
        let Some((name, actor)) = identity.filter(|_| plural.is_none_or(|it| it == kind.plural))
        else {
            return Err(not_found.into_response());
        };
        if let Some(Audited(caller_name)) = parts.extensions.get() {
            let _ = caller_name.set(name.clone());
        }
        let From(from) =
            From::from_request_parts(parts, app).await.map_err(IntoResponse::into_response)?;
        let (method, path) = (&parts.method, parts.uri.path());
        tracing::info!(audit = true, user = name, %method, path, %from, "administrator request");
        Ok(Self { kind, name, actor })
    }
}

/// Identifies the caller; `None` if it is not an administrator.
async fn identify(
    parts: &mut Parts,
    app: &App,
    kind: &Kind,
) -> Result<Option<(String, Actor)>, Error> {
    let bearer = authorization(&parts.headers).map(|(_, secret)| secret.to_owned());
    let jwt = bearer.filter(|secret| oidc::is_jwt(secret));
    if let Some(jwt) = jwt {
        // Administrators need not belong to an organization.
        let claims = oidc::claims(app, &jwt).await?;
        if !is_allowed(&parts.method, kind, &claims.roles) {
            return Ok(None);
        }
        let actor = oidc::actor(app, &claims).await?;
        return Ok(Some((claims.username.unwrap_or(claims.subject), actor)));
    }
    let caller = authenticate(parts, app).await?;
    let is_allowed = caller.may_call(parts).await.is_ok();
    Ok(is_allowed.then(|| (caller.user.username.clone(), caller.actor())))
}

/// Whether one of these roles allows the method.
fn is_allowed(method: &Method, kind: &Kind, roles: &[String]) -> bool {
    let sufficient: &[&str] = match *method {
        Method::GET => &["read", "write", "full"],
        Method::PATCH => &["write", "full"],
        Method::POST | Method::DELETE => &["full"],
        _ => &[],
    };
    let role_name = |role: &&str| format!("{}-{role}", kind.words.admin_role);
    sufficient.iter().map(role_name).any(|role| roles.contains(&role))
}

/// Lists the instances of all organizations.
#[utoipa::path(get, path = "/api/{api}/v1/admin/{plural}", tag = "administrators",
    params(KindPath, Paging, InstanceQuery),
    responses((status = 200, body = List<AdminInstance>, description = "A page of the list"), Error))]
pub(crate) async fn admin_instance_list(
    Call(app, admin): Call<Admin>,
    params: Params,
    origin: Origin,
) -> Result<Answer<List<AdminInstance>>, Error> {
    let (kind, page) = (&admin.kind, params.page()?);
    let (order, expr) = (order(kind, &params)?, expr(kind, &params)?);
    let search = Search { scope: Scope::All, kind: &kind.name, expr: expr.as_ref(), order: &order };
    let mut read = app.db.read().await?;
    let total = count(&mut read, &search).await?;
    let (size, skip) = page.bounds(total);
    let found = list(&mut read, &search, size, skip).await?;
    let items =
        found.into_iter().map(|instance| AdminInstance::new(kind, &origin, instance)).collect();
    Ok(Answer(List::new(&kind.words.admin_list, items, page, total)))
}

/// Returns an instance of any organization.
#[utoipa::path(get, path = "/api/{api}/v1/admin/{plural}/{id}", tag = "administrators",
    params(InstancePath),
    responses((status = 200, body = AdminInstance, description = "The instance"), Error))]
pub(crate) async fn admin_instance_get(
    Call(app, admin): Call<Admin>,
    Path(path): Path<InstancePath>,
    origin: Origin,
) -> Result<Answer<AdminInstance>, Error> {
    let found = find(&app, Scope::All, &admin.kind, &path).await?;
    Ok(Answer(AdminInstance::new(&admin.kind, &origin, found)))
}

/// Deletes an instance of any organization.
#[utoipa::path(delete, path = "/api/{api}/v1/admin/{plural}/{id}", tag = "administrators",
    params(InstancePath, Async), responses((status = 202, description = "Deletion accepted"), Error))]
pub(crate) async fn admin_instance_delete(
    Call(app, admin): Call<Admin>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<StatusCode, Error> {
    params.must_be_async()?;
    let id = path.id()?;
    let mut tx = app.db.begin(admin.actor).await?;
    lock(&mut tx, Scope::All, &admin.kind, id).await?;
    let by = Requester::Administrator { name: Some(admin.name) };
    store::instance::request_delete(&mut tx, Scope::All, id, by).await?;
    tx.commit().await?;
    Ok(StatusCode::ACCEPTED)
}

#[cfg(test)]
mod tests {
    use model::kind::Catalog;

    use super::*;

    #[test]
    fn admin_roles_allow_their_methods() {
        let catalog = Catalog::built_in();
        for (kind, prefix) in
            [("kafka", "kas-fleet-manager-admin"), ("dinosaur", "fleet-manager-admin")]
        {
            let kind = catalog.kind(kind).unwrap();
            for (method, read, write, full) in [
                (Method::GET, true, true, true),
                (Method::PATCH, false, true, true),
                (Method::POST, false, false, true),
                (Method::DELETE, false, false, true),
                (Method::PUT, false, false, false),
            ] {
                for (role, expected) in
                    [("read", read), ("write", write), ("full", full), ("none", false)]
                {
                    let roles = ["other".to_owned(), format!("{prefix}-{role}")];
                    assert_eq!(is_allowed(&method, kind, &roles), expected, "{method} {role}");
                }
                assert!(!is_allowed(&method, kind, &[]), "{method}");
            }
        }
    }
}
