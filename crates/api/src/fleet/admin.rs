//! Administrators' calls: the instances of all organizations.
//!
//! A caller is the platform administrator, or somebody whose token of another provider has the kind's role
//! for the method. For all others there is nothing here.

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
use model::reason::By;
use store::Scope;
use store::instance::search::{Search, count, list};

use super::Error;
use super::instance::{InstancePath, KindPath, Wants, expr, find, order};
use super::tenant::{Of, parameter};
use super::wire::{Async, List, Origin, Paging, Params};
use crate::caller::{Call, Caller, From, authorization};
use crate::instance::take;
use crate::{App, oidc};
use object::AdminInstance;

/// An administrator, and the kind whose API is called.
pub(crate) struct Admin {
    /// The kind.
    pub(crate) kind: Arc<Kind>,
    /// Who, for the log.
    pub(crate) name: String,
    /// Who, for events.
    pub(crate) actor: Actor,
}

/// The name of who is signed in, as soon as that is known.
#[derive(Clone, Default)]
struct Audited(Arc<OnceLock<String>>);

/// Writes down who does what, before and after.
pub(crate) async fn audit(mut request: Request, next: Next) -> Response {
    let who = Audited::default();
    request.extensions_mut().insert(who.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let (name, status) = (who.0.get().map_or("nobody", String::as_str), response.status());
    tracing::info!(audit = true, user = name, %method, path, %status, "administrator's call, done");
    response
}

impl FromRequestParts<App> for Admin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let Of(kind) = Of::from_request_parts(parts, app).await?;
        let nothing = Error::nothing_here(parts.uri.path());
        let found = identify(parts, app, &kind).await.map_err(IntoResponse::into_response)?;
        let plural = parameter(parts, app, "plural").await;
        let Some((name, actor)) = found.filter(|_| plural.is_none_or(|it| it == kind.plural))
        else {
            return Err(nothing.into_response());
        };
        if let Some(Audited(who)) = parts.extensions.get() {
            let _ = who.set(name.clone());
        }
        let From(from) =
            From::from_request_parts(parts, app).await.map_err(IntoResponse::into_response)?;
        let (method, path) = (&parts.method, parts.uri.path());
        tracing::info!(audit = true, user = name, %method, path, %from, "administrator's call");
        Ok(Self { kind, name, actor })
    }
}

/// Who calls, if it may.
async fn identify(
    parts: &mut Parts,
    app: &App,
    kind: &Kind,
) -> Result<Option<(String, Actor)>, Error> {
    let bearer = authorization(&parts.headers).map(|(_, secret)| secret.to_owned());
    let jwt = bearer.filter(|secret| oidc::is_jwt(secret));
    if let Some(jwt) = jwt {
        // Administrators need not be of any organization.
        let said = oidc::claims(app, &jwt).await?;
        let name = said.username.unwrap_or(said.subject);
        return Ok(may(&parts.method, kind, &said.roles).then_some((name, Actor::Anonymous)));
    }
    let caller = Caller::from_request_parts(parts, app).await?;
    Ok(caller.is_admin().then(|| (caller.user.username.clone(), caller.actor())))
}

/// Does one of these roles allow the method?
fn may(method: &Method, kind: &Kind, roles: &[String]) -> bool {
    let enough: &[&str] = match *method {
        Method::GET => &["read", "write", "full"],
        Method::PATCH => &["write", "full"],
        Method::POST | Method::DELETE => &["full"],
        _ => &[],
    };
    let wanted = |role: &&str| format!("{}-{role}", kind.words.admin_role);
    enough.iter().map(wanted).any(|role| roles.contains(&role))
}

/// Lists the instances of all organizations.
#[utoipa::path(get, path = "/api/{api}/v1/admin/{plural}", tag = "administrators",
    params(KindPath, Paging, Wants),
    responses((status = 200, body = List<AdminInstance>, description = "One page"), Error))]
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
    let (size, skip) = page.of(total);
    let found = list(&mut read, &search, size, skip).await?;
    let items = found.into_iter().map(|one| AdminInstance::new(kind, &origin, one)).collect();
    Ok(Answer(List::new(&kind.words.admin_list, items, page, total)))
}

/// One instance of any organization.
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
    params(InstancePath, Async), responses((status = 202, description = "On its way out"), Error))]
pub(crate) async fn admin_instance_delete(
    Call(app, admin): Call<Admin>,
    Path(path): Path<InstancePath>,
    params: Params,
) -> Result<StatusCode, Error> {
    params.must_be_async()?;
    let id = path.id()?;
    let mut tx = app.db.begin(admin.actor).await?;
    take(&mut tx, Scope::All, &admin.kind, id).await?;
    let by = By::Administrator { name: Some(admin.name) };
    store::instance::request_delete(&mut tx, Scope::All, id, by).await?;
    tx.commit().await?;
    Ok(StatusCode::ACCEPTED)
}

#[cfg(test)]
mod tests {
    use model::kind::Catalog;

    use super::*;

    #[test]
    fn which_role_allows_which_method() {
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
                    assert_eq!(may(&method, kind, &roles), expected, "{method} {role}");
                }
                assert!(!may(&method, kind, &[]), "{method}");
            }
        }
    }
}
