//! The action of every route: which roles may call it.
//!
//! [`Caller`](crate::caller::Caller) looks the route up here before its handler runs, and a route
//! without an entry is refused. The roles of an action are in [`model::access`]. The OpenAPI
//! documents show both.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use model::access::{Action, Principal, SubjectKind as Kind, Verb};
use serde_json::json;
use utoipa::openapi::OpenApi;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, PathItem};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Everyone, without authentication.
    Open,
    /// The agent of a cluster.
    Agent,
    /// Users whose role allows the action.
    User(Action),
    /// The same, with the first action if the path names the caller.
    OwnOr(Action, Action),
    /// Users whose role allows the first action; the handler asks for the second if the object or a
    /// setting demands it, such as for an object of another user.
    ByObject(Action, Action),
}

const fn user(kind: Kind, verb: Verb) -> Rule {
    Rule::User(Action::new(kind, verb))
}

const fn administered(kind: Kind, verb: Verb) -> Rule {
    Rule::ByObject(Action::new(kind, verb), Action::new(kind, Administer))
}

const fn account_or_user(verb: Verb) -> Rule {
    Rule::OwnOr(Action::new(Kind::Account, verb), Action::new(Kind::User, verb))
}

use Kind::{
    Account, Catalog, Cluster, Credential, Deployment, Environment, Event, Image, Instance, Invite,
    Organization, Platform, Quota, Resource, Search, ServiceAccount, Template, Token,
};
use Rule::{Agent, Open};
use Verb::{Administer, Create, Delete, Issue, Read, Update};

/// Routes of the Kargo API.
const KARGO: &[(&str, Rule)] = &[
    ("PUT /user/create/", Open),
    ("POST /user/login/", Open),
    ("GET /user/", user(Account, Read)),
    ("GET /organization/", user(Organization, Read)),
    ("GET /organization/invite/", Open),
    ("POST /organization/invite/", Open),
    ("PATCH /organization/invite/", administered(Invite, Create)),
    ("GET /cluster/", user(Cluster, Read)),
    ("PUT /cluster/", user(Cluster, Create)),
    ("GET /cluster/{id}/", user(Cluster, Read)),
    ("DELETE /cluster/{id}/", user(Cluster, Delete)),
    ("PATCH /cluster/{id}/resource/", user(Cluster, Read)),
    ("POST /cluster/{id}/resource/", user(Cluster, Update)),
    ("DELETE /cluster/{id}/resource/", user(Cluster, Update)),
    ("GET /deployment/", user(Deployment, Read)),
    ("PUT /deployment/", user(Deployment, Create)),
    ("DELETE /deployment/", user(Deployment, Delete)),
    ("DELETE /deployment/{id}/", user(Deployment, Delete)),
];

/// Routes of the platform API.
const PLATFORM: &[(&str, Rule)] = &[
    ("POST /api/v1/login", Open),
    ("POST /api/v1/logout", user(Token, Delete)),
    ("GET /api/v1/organizations", user(Organization, Read)),
    ("POST /api/v1/organizations", Open),
    ("GET /api/v1/organizations/{id}", user(Organization, Read)),
    ("PATCH /api/v1/organizations/{id}", user(Organization, Update)),
    ("DELETE /api/v1/organizations/{id}", user(Organization, Delete)),
    ("GET /api/v1/organizations/{id}/quotas", user(Quota, Read)),
    ("PATCH /api/v1/admin/organizations/{id}/quotas", user(Platform, Update)),
    ("GET /api/v1/users", user(Kind::User, Read)),
    ("GET /api/v1/users/{id}", account_or_user(Read)),
    ("PATCH /api/v1/users/{id}", account_or_user(Update)),
    ("DELETE /api/v1/users/{id}", account_or_user(Delete)),
    ("POST /api/v1/users/{id}/password-reset", user(Kind::User, Issue)),
    ("POST /api/v1/password-resets/redeem", Open),
    ("GET /api/v1/tokens", user(Token, Read)),
    (
        "POST /api/v1/tokens",
        Rule::ByObject(Action::new(Token, Create), Action::new(ServiceAccount, Administer)),
    ),
    ("GET /api/v1/tokens/{id}", user(Token, Read)),
    ("DELETE /api/v1/tokens/{id}", user(Token, Delete)),
    ("GET /api/v1/invites", user(Invite, Read)),
    ("POST /api/v1/invites", administered(Invite, Create)),
    ("POST /api/v1/invites/check", Open),
    ("POST /api/v1/invites/redeem", Open),
    ("GET /api/v1/invites/{id}", user(Invite, Read)),
    ("DELETE /api/v1/invites/{id}", user(Invite, Delete)),
    ("POST /api/v1/invites/{id}/reopen", user(Invite, Update)),
    ("GET /api/v1/clusters", user(Cluster, Read)),
    ("POST /api/v1/clusters", user(Cluster, Create)),
    ("GET /api/v1/clusters/{id}", user(Cluster, Read)),
    ("PATCH /api/v1/clusters/{id}", user(Cluster, Update)),
    ("DELETE /api/v1/clusters/{id}", user(Cluster, Delete)),
    ("POST /api/v1/clusters/{id}/token", user(Cluster, Issue)),
    ("POST /api/v1/clusters/{id}/drain", user(Cluster, Update)),
    ("DELETE /api/v1/clusters/{id}/drain", user(Cluster, Update)),
    ("POST /api/v1/clusters/{id}/retry", user(Cluster, Update)),
    ("POST /api/v1/clusters/{id}/cancel", user(Cluster, Update)),
    ("GET /api/v1/clusters/{id}/logs", user(Cluster, Read)),
    ("POST /api/v1/clusters/{id}/capacity/check", user(Cluster, Read)),
    ("POST /api/v1/clusters/{id}/capacity/take", user(Cluster, Update)),
    ("POST /api/v1/clusters/{id}/capacity/give-back", user(Cluster, Update)),
    ("GET /api/v1/deployments", user(Deployment, Read)),
    ("POST /api/v1/deployments", user(Deployment, Create)),
    ("GET /api/v1/deployments/{id}", user(Deployment, Read)),
    ("PATCH /api/v1/deployments/{id}", user(Deployment, Update)),
    ("DELETE /api/v1/deployments/{id}", user(Deployment, Delete)),
    ("GET /api/v1/deployments/{id}/history", user(Deployment, Read)),
    ("GET /api/v1/deployments/{id}/explain", user(Deployment, Read)),
    ("GET /api/v1/deployments/{id}/logs", user(Deployment, Read)),
    ("GET /api/v1/queue", user(Deployment, Read)),
    ("GET /api/v1/instances", user(Instance, Read)),
    ("POST /api/v1/instances", user(Instance, Create)),
    ("GET /api/v1/instances/{id}", user(Instance, Read)),
    ("PATCH /api/v1/instances/{id}", administered(Instance, Update)),
    ("DELETE /api/v1/instances/{id}", administered(Instance, Delete)),
    ("GET /api/v1/kinds", user(Catalog, Read)),
    ("GET /api/v1/executors", user(Catalog, Read)),
    ("GET /api/v1/images", user(Image, Read)),
    ("POST /api/v1/images", user(Image, Create)),
    ("DELETE /api/v1/images", user(Image, Delete)),
    ("GET /api/v1/templates", user(Template, Read)),
    ("POST /api/v1/templates", user(Template, Create)),
    ("GET /api/v1/templates/{reference}", user(Template, Read)),
    ("DELETE /api/v1/templates/{reference}", user(Template, Delete)),
    ("GET /api/v1/templates/{reference}/source", user(Template, Read)),
    ("GET /api/v1/templates/{reference}/diff", user(Template, Read)),
    ("GET /api/v1/templates/{reference}/impact", user(Template, Read)),
    ("POST /api/v1/templates/{reference}/deprecate", user(Template, Update)),
    ("DELETE /api/v1/templates/{reference}/deprecate", user(Template, Update)),
    ("GET /api/v1/environments", user(Environment, Read)),
    ("POST /api/v1/environments", user(Environment, Create)),
    ("POST /api/v1/environments/plan", user(Environment, Read)),
    ("GET /api/v1/environments/{id}", user(Environment, Read)),
    ("PATCH /api/v1/environments/{id}", user(Environment, Update)),
    ("DELETE /api/v1/environments/{id}", user(Environment, Delete)),
    ("POST /api/v1/environments/{id}/plan", user(Environment, Read)),
    ("POST /api/v1/environments/{id}/apply", user(Environment, Update)),
    ("POST /api/v1/environments/{id}/extend", user(Environment, Update)),
    ("POST /api/v1/environments/{id}/retry", user(Environment, Update)),
    ("POST /api/v1/environments/{id}/cancel", user(Environment, Update)),
    ("POST /api/v1/environments/{id}/observe", user(Environment, Update)),
    ("POST /api/v1/environments/{id}/repair", user(Environment, Update)),
    ("GET /api/v1/environments/{id}/drift", user(Environment, Read)),
    ("GET /api/v1/environment", user(Environment, Read)),
    ("PUT /api/v1/environment", user(Environment, Create)),
    ("GET /api/v1/environment/{id}", user(Environment, Read)),
    ("DELETE /api/v1/environment/{id}", user(Environment, Delete)),
    ("GET /api/v1/environments/{id}/resources/{name}", user(Resource, Read)),
    ("POST /api/v1/environments/{id}/resources/{name}/adopt", administered(Resource, Update)),
    ("GET /api/v1/environments/{id}/resources/{name}/logs", user(Resource, Read)),
    ("GET /api/v1/resources", user(Resource, Read)),
    ("GET /api/v1/resources/{id}", user(Resource, Read)),
    ("GET /api/v1/credentials", user(Credential, Read)),
    ("PUT /api/v1/credentials/{system}/{name}", user(Credential, Update)),
    ("DELETE /api/v1/credentials/{system}/{name}", user(Credential, Delete)),
    ("GET /api/v1/quota", user(Quota, Read)),
    ("GET /api/v1/admin/quota", user(Platform, Read)),
    ("POST /api/v1/admin/quota", user(Platform, Create)),
    ("DELETE /api/v1/admin/quota/{id}", user(Platform, Delete)),
    ("GET /api/v1/admin/denied-owners", user(Platform, Read)),
    ("POST /api/v1/admin/denied-owners", user(Platform, Create)),
    ("DELETE /api/v1/admin/denied-owners/{id}", user(Platform, Delete)),
    ("GET /api/v1/admin/encryption", user(Platform, Read)),
    ("POST /api/v1/admin/encryption/rekey", user(Platform, Update)),
    ("GET /api/v1/fleet/scaling", user(Platform, Read)),
    ("GET /api/v1/agent/desired", Agent),
    ("POST /api/v1/agent/reports", Agent),
    ("POST /api/v1/agent/heartbeat", Agent),
    ("GET /api/v1/agent/logs", Agent),
    ("POST /api/v1/agent/logs", Agent),
    ("GET /api/v1/events", user(Event, Read)),
    ("GET /api/v1/search", user(Search, Read)),
    ("GET /api/v1/graph", user(Search, Read)),
    ("GET /api/v1/self/info", Open),
    ("GET /api/v1/self/liveliness", Open),
    ("GET /api/v1/self/readiness", Open),
    ("GET /api/v1/self/started", Open),
    ("GET /api/v1/self/ping", Open),
];

/// Routes of the API of each kind.
const FLEET: &[(&str, Rule)] = &[
    ("GET /api/{api}", Open),
    ("GET /api/{api}/v1", Open),
    ("GET /api/{api}/v1/openapi", Open),
    ("GET /api/{api}/v1/errors", Open),
    ("GET /api/{api}/v1/errors/{id}", Open),
    ("GET /api/{api}/v1/status", user(Catalog, Read)),
    ("GET /api/{api}/v1/cloud_providers", user(Catalog, Read)),
    ("GET /api/{api}/v1/cloud_providers/{id}/regions", user(Catalog, Read)),
    ("GET /api/{api}/v1/instance_types/{cloud_provider}/{cloud_region}", user(Catalog, Read)),
    ("GET /api/{api}/v1/{plural}", user(Instance, Read)),
    ("POST /api/{api}/v1/{plural}", user(Instance, Create)),
    ("GET /api/{api}/v1/{plural}/{id}", user(Instance, Read)),
    ("PATCH /api/{api}/v1/{plural}/{id}", administered(Instance, Update)),
    ("DELETE /api/{api}/v1/{plural}/{id}", administered(Instance, Delete)),
    ("POST /api/{api}/v1/{plural}/{id}/promote", administered(Instance, Update)),
    ("GET /api/{api}/v1/{plural}/{id}/metrics/query", user(Instance, Read)),
    ("GET /api/{api}/v1/{plural}/{id}/metrics/query_range", user(Instance, Read)),
    ("GET /api/{api}/v1/{plural}/{id}/metrics/federate", user(Instance, Read)),
    ("GET /api/{api}/v1/agent-clusters/{id}", Agent),
    ("PUT /api/{api}/v1/agent-clusters/{id}/status", Agent),
    ("GET /api/{api}/v1/agent-clusters/{id}/{plural}", Agent),
    ("PUT /api/{api}/v1/agent-clusters/{id}/{plural}/status", Agent),
    ("POST /api/{api}/v1/obs-proxy-verification/{external_id}", Agent),
    ("GET /api/{api}/v1/admin/{plural}", user(Platform, Read)),
    ("GET /api/{api}/v1/admin/{plural}/{id}", user(Platform, Read)),
    ("PATCH /api/{api}/v1/admin/{plural}/{id}", user(Platform, Update)),
    ("DELETE /api/{api}/v1/admin/{plural}/{id}", user(Platform, Delete)),
    ("POST /api/{api}/v1/admin/{plural}/{id}/revoke_tls_certificate", user(Platform, Update)),
    ("GET /api/{api}/v1/service_accounts", user(ServiceAccount, Read)),
    ("POST /api/{api}/v1/service_accounts", user(ServiceAccount, Create)),
    ("GET /api/{api}/v1/service_accounts/{id}", administered(ServiceAccount, Read)),
    ("DELETE /api/{api}/v1/service_accounts/{id}", administered(ServiceAccount, Delete)),
    (
        "POST /api/{api}/v1/service_accounts/{id}/reset_credentials",
        administered(ServiceAccount, Update),
    ),
    ("GET /api/{api}/v1/sso_providers", Open),
    ("POST /auth/realms/paddock/protocol/openid-connect/token", Open),
    ("GET /api/{api}/v1/clusters", user(Cluster, Read)),
    ("POST /api/{api}/v1/clusters", user(Cluster, Administer)),
    ("GET /api/{api}/v1/clusters/{id}", user(Cluster, Read)),
    ("DELETE /api/{api}/v1/clusters/{id}", user(Cluster, Administer)),
    ("GET /api/{api}/v1/clusters/{id}/addon_parameters", user(Cluster, Issue)),
];

/// The rule of a route, by method and path template.
pub(crate) fn rule(route: &str) -> Option<Rule> {
    static RULES: LazyLock<HashMap<&str, Rule>> =
        LazyLock::new(|| [KARGO, PLATFORM, FLEET].into_iter().flatten().copied().collect());
    RULES.get(route).copied()
}

/// The rule of the route that serves this request; none if it has no route or no entry.
pub(crate) fn rule_of(parts: &Parts) -> Option<Rule> {
    let path = parts.extensions.get::<MatchedPath>()?;
    // HEAD is served by the route of GET.
    let method = if parts.method == "HEAD" { "GET" } else { parts.method.as_str() };
    rule(&format!("{method} {}", path.as_str()))
}

/// The id in the path, which may name the caller.
pub(crate) async fn path_id(parts: &mut Parts) -> Option<String> {
    let all = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    all.iter().find(|(key, _)| *key == "id").map(|(_, value)| value.to_owned())
}

/// Adds the rule of every operation to an OpenAPI document.
pub(crate) fn document(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            let Some(rule) = rule(&format!("{method} {path}")) else { continue };
            let (fields, sentence) = described(rule);
            let value = Extensions::from_iter([("x-paddock-access", fields)]);
            operation.extensions.get_or_insert_default().merge(value);
            let text = operation.description.take();
            operation.description = Some(match text {
                Some(text) if !text.is_empty() => format!("{text}\n\n{sentence}"),
                _ => sentence,
            });
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    let all = [("GET", get), ("PUT", put), ("POST", post), ("DELETE", delete), ("PATCH", patch)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

fn described(rule: Rule) -> (serde_json::Value, String) {
    let names = |action: Action| -> Vec<&str> {
        action.roles().iter().map(|role: &Principal| role.as_str()).collect()
    };
    let listed = |action: Action| match names(action).as_slice() {
        all if all.len() == Principal::ALL.len() => "all".to_owned(),
        some => some.join(", "),
    };
    match rule {
        Open => (json!({"open": true}), "Needs no authentication.".into()),
        Agent => (json!({"agent": true}), "For the agent of a cluster.".into()),
        Rule::User(action) => (
            json!({"action": action.to_string(), "roles": names(action)}),
            format!("Roles: {}.", listed(action)),
        ),
        Rule::OwnOr(own, other) => (
            json!({
                "action": other.to_string(), "roles": names(other),
                "own": {"action": own.to_string(), "roles": names(own)},
            }),
            format!("Roles: {}; {} for the caller's own user.", listed(other), listed(own)),
        ),
        Rule::ByObject(least, most) => (
            json!({
                "action": least.to_string(), "roles": names(least),
                "by_object": {"action": most.to_string(), "roles": names(most)},
            }),
            format!(
                "Roles: {}; depending on the object or the server's settings only {}.",
                listed(least),
                listed(most)
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_rule_that_agrees_with_its_security() {
        let mut rules = KARGO.len() + PLATFORM.len() + FLEET.len();
        for (name, document) in crate::documents() {
            let document = serde_json::to_value(document).unwrap();
            for (path, item) in document["paths"].as_object().unwrap() {
                for (method, operation) in item.as_object().unwrap() {
                    let route = format!("{} {path}", method.to_uppercase());
                    let rule = rule(&route).unwrap_or_else(|| {
                        panic!("{name}: {route} has no rule: add it to api/src/access.rs")
                    });
                    let security = &operation["security"];
                    assert_eq!(rule == Open, *security == json!([{}]), "{route}");
                    let is_agent = *security == json!([{"cluster_token": []}]);
                    assert_eq!(rule == Agent, is_agent, "{route}");
                    rules -= 1;
                }
            }
        }
        assert_eq!(rules, 0, "a rule without a route, or two rules for one");
    }

    #[test]
    fn every_rule_admits_someone() {
        for (route, rule) in [KARGO, PLATFORM, FLEET].into_iter().flatten() {
            let actions = match rule {
                Rule::User(action) => vec![action],
                Rule::OwnOr(one, other) | Rule::ByObject(one, other) => vec![one, other],
                Open | Agent => vec![],
            };
            for action in actions {
                assert!(action.needs().is_some(), "{route}");
            }
        }
    }
}
