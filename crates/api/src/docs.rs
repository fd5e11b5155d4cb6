//! OpenAPI documents and the web pages built into the binary.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, InfoBuilder, OpenApi, OpenApiBuilder, SecurityRequirement};
use utoipa::{PartialSchema, ToSchema};
use wire::problem::Problem as Document;

use crate::Problem;
use crate::fleet::error::Envelope;

/// Creates an OpenAPI document without paths.
pub(crate) fn blank(title: &str, description: &str) -> OpenApi {
    let info = InfoBuilder::new()
        .title(title)
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description));
    let mut components = Components::new();
    for (name, scheme) in [("bearer", HttpAuthScheme::Bearer), ("basic", HttpAuthScheme::Basic)] {
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(scheme).build());
        components.add_security_scheme(name, scheme);
    }
    let mut schemas = vec![(Document::name().into_owned(), Document::schema())];
    Document::schemas(&mut schemas);
    components.schemas.extend(schemas);
    let none: [String; 0] = [];
    let security = ["bearer", "basic"].map(|name| SecurityRequirement::new(name, none.clone()));
    OpenApiBuilder::new()
        .info(info.build())
        .components(Some(components))
        .security(Some(security))
        .build()
}

/// Adds the authentication scheme of agents.
pub(crate) fn with_cluster_token(mut document: OpenApi) -> OpenApi {
    let description = "Token of a cluster's agent. Created by `POST /api/v1/clusters/{id}/token`.";
    let scheme =
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("cluster_token", SecurityScheme::Http(scheme));
    document
}

/// Replaces problem documents by the error envelope of fleet managers.
pub(crate) fn with_fleet_error(mut document: OpenApi) -> OpenApi {
    let components = document.components.get_or_insert_default();
    let mut problem = vec![(Document::name().into_owned(), Document::schema())];
    Document::schemas(&mut problem);
    for (name, _) in problem {
        components.schemas.remove(&name);
    }
    components.schemas.insert(Envelope::name().into_owned(), Envelope::schema());
    document
}

/// Serves the console and the API reference.
pub(crate) fn page(request: &Request) -> Response {
    let Some(file) = console::file(request.uri().path()) else {
        return Problem::new(
            StatusCode::NOT_FOUND,
            "Path not found; see /docs for the API reference.",
        )
        .into_response();
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let fixed = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
    let headers = [
        fixed(header::CONTENT_TYPE, file.content_type),
        fixed(header::ETAG, file.etag),
        fixed(header::CACHE_CONTROL, console::CACHE_CONTROL),
        fixed(header::CONTENT_SECURITY_POLICY, console::CONTENT_SECURITY_POLICY),
        fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        fixed(header::REFERRER_POLICY, "no-referrer"),
    ];
    let known = request.headers().get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok());
    if known.is_some_and(|known| known.contains(file.etag)) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, file.body).into_response()
}
