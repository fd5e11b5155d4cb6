//! HTTP APIs: validate and authorise requests and record the desired state; workers do the rest.
//!
//! One module per API family: `kargo` (unversioned), `platform` (`/api/v1`), `fleet`
//! (`/api/{api}/v1` for every kind in the catalog). No SQL here.

mod access;
mod account;
mod admin;
mod amount;
mod app;
mod body;
mod cache;
mod caller;
mod docs;
mod edge;
mod etag;
mod fleet;
mod idempotency;
mod images;
mod instance;
mod kargo;
mod logs;
pub mod metrics_backend;
mod observe;
pub mod oidc;
mod page;
mod password;
mod platform;
mod problem;
mod pulse;
mod relay;
mod serve;
mod sign_up;
mod storage;
mod throttle;
mod token_use;

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

pub use app::{Adopters, App, Parts, Publishers, Settings, SignUp, SsoEndpoints};
pub use edge::host::AllowedHosts;
pub use edge::proxy::Network;
pub use edge::settings::{EdgeSettings, Limit};
pub use images::{ImageResult, Images, NoImages};
pub use logs::{Lines, Logs, NoLogs};
pub use problem::Problem;
pub use serve::serve;

/// Returns the OpenAPI documents by name.
pub fn documents() -> [(&'static str, OpenApi); 3] {
    [
        ("kargo", kargo_family().split_for_parts().1),
        ("fleet", fleet_family().split_for_parts().1),
        ("platform", platform_family().split_for_parts().1),
    ]
}

fn kargo_family() -> OpenApiRouter<App> {
    let description = "Clusters and deployments for teams: the Kargo API. Numbers may be JSON numbers, \
                 numeric strings (surrounding blanks are ignored), or quantities such as 500m and \
                 4Gi.";
    family(docs::blank("Paddock: Kargo", description), kargo::routes())
}

/// A family of routes with its document, which shows who may call each of them.
fn family(document: OpenApi, routes: OpenApiRouter<App>) -> OpenApiRouter<App> {
    let mut family = OpenApiRouter::with_openapi(document).merge(routes);
    access::document(family.get_openapi_mut());
    family
}

fn platform_family() -> OpenApiRouter<App> {
    let description = "The complete API, versioned. Errors are problem documents (RFC 9457). Unknown fields in a \
                 body are rejected. Lists are paged with `after`. Authenticated create requests accept an \
                 Idempotency-Key, updates accept If-Match.";
    let document = docs::with_cluster_token(docs::blank("Paddock: platform", description));
    family(document, platform::routes())
}

fn fleet_family() -> OpenApiRouter<App> {
    let description = "Managed services: one API per kind in the catalog, compatible with fleet managers. Unknown \
                 fields in a body are ignored, absent values are omitted, and long-running operations \
                 require `async=true`.";
    let document = docs::with_fleet_error(docs::blank("Paddock: managed services", description));
    let document = docs::with_cluster_token(document);
    family(document, fleet::routes())
}

fn router(app: App) -> Router {
    let (kargo, kargo_document) = kargo_family().split_for_parts();
    let (platform, platform_document) = platform_family().split_for_parts();
    let (fleet, fleet_document) = fleet_family().split_for_parts();
    kargo
        .merge(platform)
        .merge(fleet)
        .route("/docs/kargo.json", get(async move || Json(kargo_document)))
        .route("/docs/platform.json", get(async move || Json(platform_document)))
        .route("/docs/fleet.json", get(async move || Json(fleet_document)))
        .route("/metrics", get(observe::metrics))
        .fallback(fallback)
        .layer(from_fn(idempotency::digest))
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(from_fn_with_state(app.clone(), edge::admit))
        .layer(from_fn_with_state(app.clone(), observe::observe))
        .with_state(app)
}

/// Handles paths without a route: web pages, or an error in the format of the path's family.
async fn fallback(State(app): State<App>, request: Request) -> Response {
    match fleet::kind_of_path(&app, request.uri().path()) {
        Some(_) => fleet::not_found(&app, request).await,
        None => docs::page(&request),
    }
}

/// Normalizes the path: Kargo paths end in a slash, all others do not.
fn normalize_path(mut request: Request) -> Request {
    let path = request.uri().path();
    let bare = path.trim_end_matches('/');
    let first = bare.split('/').nth(1).unwrap_or_default();
    let normalized = match bare {
        "" => "/".to_owned(),
        _ if kargo::PREFIXES.contains(&first) => format!("{bare}/"),
        _ => bare.to_owned(),
    };
    if normalized != path {
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        if let Ok(uri) = format!("{normalized}{query}").parse::<Uri>() {
            *request.uri_mut() = uri;
        }
    }
    request
}
