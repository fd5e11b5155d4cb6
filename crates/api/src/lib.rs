//! The HTTP APIs: what comes in is checked, authorised and written down as intent; workers do the
//! rest.
//!
//! One module per family: `kargo` (unversioned), `platform` (`/api/v1`), `fleet` (`/api/{api}/v1` for every
//! kind of the catalog). No SQL is known here.

mod account;
mod admin;
mod amount;
mod app;
mod body;
mod cache;
mod caller;
mod docs;
mod etag;
mod fleet;
mod idempotency;
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
mod throttle;

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

pub use app::{App, Parts, Publishers, Settings, SignIn};
pub use logs::{Lines, Logs, NoLogs};
pub use problem::Problem;
pub use serve::serve;

/// The OpenAPI documents, by name.
pub fn documents() -> [(&'static str, OpenApi); 3] {
    [
        ("kargo", kargo_family().split_for_parts().1),
        ("fleet", fleet_family().split_for_parts().1),
        ("platform", platform_family().split_for_parts().1),
    ]
}

fn kargo_family() -> OpenApiRouter<App> {
    let about = "Clusters and deployments for teams: the Kargo API. Numbers may be JSON numbers, \
                 text with blanks, or quantities such as 500m and 4Gi.";
    OpenApiRouter::with_openapi(docs::blank("Paddock: Kargo", about)).merge(kargo::routes())
}

fn platform_family() -> OpenApiRouter<App> {
    let about = "Everything, versioned. Errors are problem documents (RFC 9457); unknown fields in a \
                 body are an error; lists go on with `after`; creating calls of who is signed in take an Idempotency-Key; \
                 changes take If-Match.";
    let document = docs::with_cluster_token(docs::blank("Paddock: platform", about));
    OpenApiRouter::with_openapi(document).merge(platform::routes())
}

fn fleet_family() -> OpenApiRouter<App> {
    let about = "Managed services, one API for each kind in the catalog, as fleet managers have it. Unknown \
                 fields in a body are ignored, values that are not there are left out, and what takes long \
                 must be asked for with `async=true`.";
    let document = docs::with_fleet_error(docs::blank("Paddock: managed services", about));
    let document = docs::with_cluster_token(document);
    OpenApiRouter::with_openapi(document).merge(fleet::routes())
}

/// The server's routes.
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
        .layer(from_fn_with_state(app.clone(), observe::observe))
        .with_state(app)
}

/// What is at paths without a route: pages, or nothing, as the family of the path says it.
async fn fallback(State(app): State<App>, request: Request) -> Response {
    match fleet::family(&app, request.uri().path()) {
        Some(_) => fleet::nothing(&app, request).await,
        None => docs::page(&request),
    }
}

/// Gives paths their one spelling: the Kargo API's end in a slash, all others don't.
fn one_spelling(mut request: Request) -> Request {
    let path = request.uri().path();
    let bare = path.trim_end_matches('/');
    let first = bare.split('/').nth(1).unwrap_or_default();
    let wanted = match bare {
        "" => "/".to_owned(),
        _ if kargo::WORDS.contains(&first) => format!("{bare}/"),
        _ => bare.to_owned(),
    };
    if wanted != path {
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        if let Ok(uri) = format!("{wanted}{query}").parse::<Uri>() {
            *request.uri_mut() = uri;
        }
    }
    request
}
