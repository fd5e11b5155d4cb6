//! Which kind's API is called, and by whom.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use model::kind::Kind;

use super::Error;
use crate::caller::Caller;
use crate::{App, Problem};

/// The kind whose API is called, by whomever.
pub(crate) struct Of(pub(crate) Arc<Kind>);

/// Somebody who is signed in and may have instances, and the kind whose API is called.
pub(crate) struct Tenant {
    /// The kind.
    pub(crate) kind: Arc<Kind>,
    /// Who.
    pub(crate) caller: Caller,
}

impl Tenant {
    /// Fails with 404 unless the kind has this call.
    pub(crate) fn must_offer(&self, is_offered: bool, what: &str) -> Result<(), Error> {
        if is_offered {
            return Ok(());
        }
        Err(Error::new(7, format!("{} has no {what}.", self.kind.display_name)))
    }
}

impl FromRequestParts<App> for Of {
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
        let Of(kind) = Of::from_request_parts(parts, app).await?;
        let caller =
            Caller::from_request_parts(parts, app).await.map_err(IntoResponse::into_response)?;
        admitted(app, &caller).await.map_err(IntoResponse::into_response)?;
        // Only who is signed in learns what there is and what not.
        if parameter(parts, app, "plural").await.is_some_and(|plural| plural != kind.plural) {
            return Err(Error::nothing_here(parts.uri.path()).into_response());
        }
        Ok(Self { kind, caller })
    }
}

/// Fails if the caller may not have instances at all.
async fn admitted(app: &App, caller: &Caller) -> Result<(), Error> {
    let mut read = app.db.read().await?;
    if app.rules.is_denied(&mut read, &caller.user.username).await? {
        return Err(Error::new(
            4,
            format!("User '{}' is denied this service.", caller.user.username),
        ));
    }
    Ok(())
}

pub(super) async fn parameter(parts: &mut Parts, app: &App, name: &str) -> Option<String> {
    let all = RawPathParams::from_request_parts(parts, app).await.ok()?;
    all.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
