//! Public API of every kind in the catalog, `/api/{api}/v1`, compatible with fleet managers.
//!
//! The path determines the kind, so a reloaded catalog needs no new routes. Unknown fields in a
//! body are ignored; absent values are omitted, never `null`. The operations are in
//! `crate::instance`, shared with the platform API; this module holds only types, names and error
//! codes.

pub(crate) mod admin;
pub(crate) mod agent;
pub(crate) mod body;
pub(crate) mod change;
pub(crate) mod cluster;
pub(crate) mod create;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod instance;
pub(crate) mod instance_type;
pub(crate) mod metrics;
pub(crate) mod object;
pub(crate) mod place;
pub(crate) mod promote;
pub(crate) mod root;
pub(crate) mod service_account;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod wire;

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use model::kind::Kind;
use tower_http::compression::CompressionLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::caller::authenticate;

pub(crate) use error::Error;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(root::api_get))
        .routes(routes!(root::version_get))
        .routes(routes!(document::openapi_get))
        .routes(routes!(error::error_list))
        .routes(routes!(error::error_get))
        .routes(routes!(root::status_get))
        .routes(routes!(place::cloud_provider_list))
        .routes(routes!(place::region_list))
        .routes(routes!(instance_type::instance_type_list))
        .routes(routes!(instance::instance_list, create::instance_create))
        .routes(routes!(instance::instance_get, change::instance_update, instance::instance_delete))
        .routes(routes!(promote::instance_promote))
        .routes(routes!(agent::agent_cluster_get))
        .routes(routes!(agent::status::agent_cluster_report))
        .routes(routes!(agent::list::agent_instance_list))
        .routes(routes!(agent::report::agent_instance_report))
        .routes(routes!(agent::verification::observer_verify))
        .merge(admin_routes())
        .routes(routes!(metrics::metrics_query))
        .routes(routes!(metrics::metrics_query_range))
        .routes(routes!(metrics::metrics_federate))
        .routes(routes!(
            service_account::service_account_list,
            service_account::service_account_create
        ))
        .routes(routes!(
            service_account::service_account_get,
            service_account::service_account_delete
        ))
        .routes(routes!(service_account::service_account_reset))
        .routes(routes!(token::sso_provider_get))
        .routes(routes!(token::token_create))
        .routes(routes!(cluster::enterprise_cluster_list, cluster::enterprise_cluster_register))
        .routes(routes!(cluster::enterprise_cluster_get, cluster::enterprise_cluster_deregister))
        .routes(routes!(cluster::enterprise_cluster_parameters))
        .layer(CompressionLayer::new())
        .layer(wire::cors())
}

fn admin_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(admin::admin_instance_list))
        .routes(routes!(
            admin::admin_instance_get,
            admin::change::admin_instance_update,
            admin::admin_instance_delete
        ))
        .routes(routes!(admin::change::admin_certificate_revoke))
        .layer(axum::middleware::from_fn(admin::audit))
}

/// Returns the kind whose API contains this path.
pub(crate) fn kind_of_path(app: &App, path: &str) -> Option<Arc<Kind>> {
    let api = path.strip_prefix("/api/")?.split('/').next()?;
    app.rules.catalog().by_api(api).cloned()
}

/// Response for a path without a route in a kind's API: not found, if authenticated.
pub(crate) async fn not_found(app: &App, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match authenticate(&parts, app).await {
        Ok(_) => Error::path_not_found(parts.uri.path()).into_response(),
        Err(problem) => problem.into_response(),
    }
}
