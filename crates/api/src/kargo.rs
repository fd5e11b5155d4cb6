//! The Kargo API: unversioned, with its historical field names. Unknown fields in a body are
//! ignored.

pub(crate) mod cluster;
pub(crate) mod deployment;
pub(crate) mod invite;
pub(crate) mod resource;
pub(crate) mod user;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;

/// First path segments of this API. Paths end in a slash, which may be omitted.
pub(crate) const PREFIXES: [&str; 4] = ["user", "organization", "cluster", "deployment"];

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(user::user_create))
        .routes(routes!(user::user_login))
        .routes(routes!(user::user_show))
        .routes(routes!(user::organization_show))
        .routes(routes!(invite::invite_open, invite::invite_show, invite::invite_use))
        .routes(routes!(cluster::cluster_list, cluster::cluster_create))
        .routes(routes!(cluster::cluster_show, cluster::cluster_delete))
        .routes(routes!(
            resource::resource_check,
            resource::resource_take,
            resource::resource_give_back
        ))
        .routes(routes!(
            deployment::deployment_list,
            deployment::deployment_create,
            deployment::deployment_delete_all
        ))
        .routes(routes!(deployment::deployment_delete))
}
