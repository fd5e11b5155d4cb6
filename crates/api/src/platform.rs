//! The platform API, `/api/v1`: complete and versioned. Unknown fields in a body are rejected.

pub(crate) mod access_token;
pub(crate) mod agent;
pub(crate) mod agent_log;
pub(crate) mod cluster;
pub(crate) mod credential;
pub(crate) mod denied_owner;
pub(crate) mod deployment;
pub(crate) mod encryption;
pub(crate) mod environment;
pub(crate) mod event;
pub(crate) mod executor;
pub(crate) mod explain;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod image;
pub(crate) mod instance;
pub(crate) mod invite;
pub(crate) mod kind;
pub(crate) mod log;
pub(crate) mod login;
pub(crate) mod organization;
pub(crate) mod organization_quota;
pub(crate) mod password;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod resource;
pub(crate) mod scaling;
pub(crate) mod search;
pub(crate) mod template;
pub(crate) mod token;
pub(crate) mod user;

use cluster::condition;
use environment::{alias, command, drift, plan};
use resource::logs;
use template::{compare, publish};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;

#[expect(clippy::too_many_lines, reason = "one line per route")]
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(login::login))
        .routes(routes!(login::logout))
        .routes(routes!(organization::organization_list, organization::organization_create))
        .routes(routes!(
            organization::organization_get,
            organization::organization_update,
            organization::deletion::organization_delete
        ))
        .routes(routes!(organization_quota::organization_quota_get))
        .routes(routes!(organization_quota::organization_quota_update))
        .routes(routes!(user::user_list))
        .routes(routes!(user::user_get, user::user_update, user::user_delete))
        .routes(routes!(password::password_reset_create))
        .routes(routes!(password::password_reset_redeem))
        .routes(routes!(access_token::token_list, access_token::token_create))
        .routes(routes!(access_token::token_get, access_token::token_revoke))
        .routes(routes!(invite::invite_list, invite::invite_create))
        .routes(routes!(invite::invite_check))
        .routes(routes!(invite::invite_redeem))
        .routes(routes!(invite::invite_get, invite::invite_revoke))
        .routes(routes!(invite::invite_reopen))
        .routes(routes!(cluster::cluster_list, cluster::cluster_create))
        .routes(routes!(cluster::cluster_get, cluster::cluster_update, cluster::cluster_delete))
        .routes(routes!(token::cluster_token))
        .routes(routes!(condition::cluster_drain, condition::cluster_undrain))
        .routes(routes!(condition::cluster_retry))
        .routes(routes!(condition::cluster_cancel))
        .routes(routes!(logs::cluster_logs))
        .routes(routes!(cluster::capacity_check))
        .routes(routes!(cluster::capacity_take))
        .routes(routes!(cluster::capacity_give_back))
        .routes(routes!(deployment::deployment_list, deployment::deployment_create))
        .routes(routes!(
            deployment::deployment_get,
            deployment::deployment_update,
            deployment::deployment_delete
        ))
        .routes(routes!(deployment::deployment_history))
        .routes(routes!(explain::deployment_explain))
        .routes(routes!(log::deployment_logs))
        .routes(routes!(queue::queue_list))
        .routes(routes!(instance::instance_list, instance::instance_create))
        .routes(routes!(
            instance::instance_get,
            instance::instance_update,
            instance::instance_delete
        ))
        .routes(routes!(kind::kind_list))
        .routes(routes!(image::image_list, image::image_load, image::image_delete))
        .routes(routes!(template::template_list, publish::template_publish))
        .routes(routes!(template::template_get, template::template_delete))
        .routes(routes!(template::template_source))
        .routes(routes!(compare::template_diff))
        .routes(routes!(compare::template_impact))
        .routes(routes!(template::template_deprecate, template::template_restore))
        .routes(routes!(environment::environment_list, environment::environment_create))
        .routes(routes!(plan::environment_plan_new))
        .routes(routes!(
            environment::environment_get,
            environment::environment_update,
            command::environment_destroy
        ))
        .routes(routes!(plan::environment_plan))
        .routes(routes!(command::environment_apply))
        .routes(routes!(command::environment_extend))
        .routes(routes!(command::environment_retry))
        .routes(routes!(command::environment_cancel))
        .routes(routes!(command::environment_observe))
        .routes(routes!(command::environment_repair))
        .routes(routes!(drift::environment_drift))
        .routes(routes!(alias::environment_put, alias::environment_list_alias))
        .routes(routes!(alias::environment_get_alias, alias::environment_destroy_alias))
        .routes(routes!(resource::environment_resource))
        .routes(routes!(resource::resource_adopt))
        .routes(routes!(logs::resource_logs))
        .routes(routes!(resource::resource_list))
        .routes(routes!(resource::resource_get))
        .routes(routes!(executor::executor_list))
        .routes(routes!(credential::credential_list))
        .routes(routes!(credential::credential_set, credential::credential_delete))
        .routes(routes!(quota::quota_get))
        .routes(routes!(quota::admin_quota_list, quota::admin_quota_create))
        .routes(routes!(quota::admin_quota_delete))
        .routes(routes!(denied_owner::denied_owner_list, denied_owner::denied_owner_create))
        .routes(routes!(denied_owner::denied_owner_delete))
        .routes(routes!(scaling::scaling_list))
        .routes(routes!(encryption::encryption_get))
        .routes(routes!(encryption::encryption_rekey))
        .routes(routes!(agent::agent_desired))
        .routes(routes!(agent::agent_report))
        .routes(routes!(agent::agent_heartbeat))
        .routes(routes!(agent_log::agent_log_asks, agent_log::agent_log_answer))
        .routes(routes!(event::event_list))
        .routes(routes!(health::self_info))
        .routes(routes!(health::self_liveliness))
        .routes(routes!(health::self_readiness))
        .routes(routes!(health::self_started))
        .routes(routes!(health::self_ping))
        .routes(routes!(search::search))
        .routes(routes!(graph::graph))
}
