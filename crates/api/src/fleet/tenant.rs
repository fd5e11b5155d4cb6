//! Extractors: the kind whose API is called, and the caller.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use model::kind::Kind;

use super::Error;
use crate::caller::{Caller, authenticate};
use crate::{App, Problem};

/// The kind whose API is called.
pub(crate) struct ApiKind(pub(crate) Arc<Kind>);

/// An authenticated caller who may own instances, and the kind whose API is called.
pub(crate) struct Tenant {
    /// Kind.
    pub(crate) kind: Arc<Kind>,
    /// Caller.
    pub(crate) caller: Caller,
}

impl Tenant {
    /// Fails with 404 unless the kind offers this endpoint.
    pub(crate) fn must_offer(&self, is_offered: bool, what: &str) -> Result<(), Error> {
        if is_offered {
            return Ok(());
        }
        Err(Error::new(7, format!("{} has no {what}.", self.kind.display_name)))
    }
}

impl FromRequestParts<App> for ApiKind {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let api = parameter(parts, app, "api").await.unwrap_or_default();
        let kind = app.rules.catalog().by_api(&api).cloned();
        kind.map(Self).ok_or_else(|| Problem::not_found("API", &api).into_response())
    }
}

impl FromRequestParts<App> for Tenant {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let ApiKind(kind) = ApiKind::from_request_parts(parts, app).await?;
        let caller = authenticate(parts, app).await.map_err(IntoResponse::into_response)?;
        let allowed = caller.may_call(parts).await;
        allowed.map_err(|problem| Error::new(11, problem.to_string()).into_response())?;
        must_not_be_denied(app, &caller).await.map_err(IntoResponse::into_response)?;
        // Only authenticated callers learn which paths exist.
        if parameter(parts, app, "plural").await.is_some_and(|plural| plural != kind.plural) {
            return Err(Error::path_not_found(parts.uri.path()).into_response());
        }
        Ok(Self { kind, caller })
    }
}

/// Fails if the caller may not own instances.
async fn must_not_be_denied(app: &App, caller: &Caller) -> Result<(), Error> {
    let mut read = app.db.read().await?;
    if app.rules.is_denied(&mut read, &caller.user.username).await? {
        return Err(Error::new(
            4,
            format!("User '{}' is on the deny list of this service.", caller.user.username),
        ));
    }
    Ok(())
}

pub(super) async fn parameter(parts: &mut Parts, app: &App, name: &str) -> Option<String> {
    let all = RawPathParams::from_request_parts(parts, app).await.ok()?;
    all.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
