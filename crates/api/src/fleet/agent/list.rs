//! Desired instances of an agent's cluster, with what the agent needs to create them.
//!
//! An instance that cannot be rendered now is omitted and logged: agents leave missing instances
//! unchanged.

use axum::Json as Answer;
use engine::instance::credentials;
use futures_util::StreamExt;
use model::instance::{Instance, Status};
use model::kind::{Kind, LimitValue, Shown, Size};
use port::SsoClient;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::{Page, Scope, instance};
use utoipa::ToSchema;

use super::{Agent, AgentKindPath, reserved};
use crate::App;
use crate::caller::Call;
use crate::fleet::Error;

/// Maximum number of instances of a cluster.
const MAX_INSTANCES: i64 = 100_000;
/// Number of secrets decrypted in parallel.
const PARALLEL_DECRYPTIONS: usize = 16;
/// Session lifetime before clients must reauthenticate, in milliseconds.
const SESSION_MS: i64 = 299_000;

/// Desired instances of a cluster. Agents leave instances that are not listed unchanged.
#[derive(Serialize, ToSchema)]
pub(crate) struct ManagedList {
    /// Kind of the list: `ManagedKafkaList`.
    kind: String,
    /// Instances, each with `id`, `kind`, `metadata` (`name`, `namespace`, `annotations`, `labels`)
    /// and `spec` (`capacity`, `owners`, `endpoint`, `versions`, `deleted`, and for SSO
    /// `serviceAccounts` and `oauth`), under the kind's names.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
}

/// Lists the desired instances of the agent's cluster, with secrets.
///
/// Agents must leave instances that are not listed unchanged.
#[utoipa::path(get, path = "/api/{api}/v1/agent-clusters/{id}/{plural}", tag = "agents",
    params(AgentKindPath), security(("cluster_token" = [])),
    responses((status = 200, body = ManagedList, description = "Desired instances"), Error))]
pub(crate) async fn agent_instance_list(
    Call(app, agent): Call<Agent>,
) -> Result<Answer<ManagedList>, Error> {
    let kind = &*agent.kind;
    let filter = instance::Filter {
        kind: Some(kind.name.clone()),
        cluster: Some(agent.cluster.id),
        ..instance::Filter::default()
    };
    let mut read = app.db.read().await?;
    let all = instance::list(&mut read, Scope::All, &filter, &Page::first(MAX_INSTANCES)).await?;
    drop(read);
    let visible = all.into_iter().filter(|i| i.status.is_sent_to_agent() && i.host.is_some());
    let items = futures_util::stream::iter(visible.map(|instance| item(&app, kind, instance)));
    let items = items.buffered(PARALLEL_DECRYPTIONS).filter_map(std::future::ready);
    let mut items: Vec<Value> = items.collect().await;
    items.extend(reserved::items(&app.rules.pools(), &agent.cluster, kind));
    Ok(Answer(ManagedList { kind: kind.words.agent_list.clone(), items }))
}

async fn item(app: &App, kind: &Kind, instance: Instance) -> Option<Value> {
    let size = kind
        .instance_type(&instance.instance_type)
        .and_then(|instance_type| instance_type.size(&instance.size));
    // A deletion needs neither a size nor secrets: nothing may block it.
    if instance.status == Status::Deprovision {
        return Some(managed(app, kind, &instance, size, None));
    }
    let Some(size) = size else {
        tracing::warn!(instance = %instance.id, "instance hidden from its agent: its size is not in the catalog");
        return None;
    };
    match credentials(&app.db, &*app.seal, instance.id).await {
        Ok(client) => Some(managed(app, kind, &instance, Some(size), client.as_ref())),
        Err(why) => {
            tracing::warn!(instance = %instance.id, %why, "instance hidden from its agent: decrypting its secrets failed");
            None
        }
    }
}

fn managed(
    app: &App,
    kind: &Kind,
    instance: &Instance,
    size: Option<&Size>,
    client: Option<&SsoClient>,
) -> Value {
    let (words, domain) = (&kind.words, &kind.words.agent_domain);
    let mut versions = json!({
        words.version.as_str(): instance.detail.desired.service,
        words.operator.as_str(): instance.detail.desired.operator,
    });
    if let Some(word) = &words.ibp {
        versions[word] = json!(instance.detail.desired.protocol);
    }
    let mut spec = json!({
        "capacity": capacity(size, instance.detail.retention_bytes),
        "owners": [instance.owner],
        "endpoint": {words.agent_host.as_str(): instance.host},
        "versions": versions,
        "deleted": instance.status == Status::Deprovision,
    });
    if let Some(client) = client {
        let password = client.secret.reveal();
        spec["serviceAccounts"] =
            json!([{"name": "canary", "principal": client.id, "password": password}]);
        if let Some(oauth) = oauth(app, instance) {
            spec["oauth"] = oauth;
        }
    }
    let quota = size.map(|size| size.quota_consumed.to_string()).unwrap_or_default();
    let profile = format!("{domain}/{}InstanceProfile", kind.name);
    json!({
        "id": instance.id,
        "kind": words.agent_object,
        "metadata": {
            "name": instance.name,
            "namespace": instance.namespace(),
            "annotations": {
                format!("{domain}/id"): instance.id,
                format!("{domain}/placementId"): instance.detail.placement,
            },
            "labels": {
                format!("{profile}Type"): instance.instance_type,
                format!("{profile}QuotaConsumed"): quota,
                format!("{domain}/suspended"): instance.status.is_suspended().to_string(),
            },
        },
        "spec": spec,
    })
}

/// Capacity limits of a size, under the agents' names.
pub(super) fn capacity(size: Option<&Size>, retention_bytes: Option<i64>) -> Map<String, Value> {
    let limits = size.iter().flat_map(|size| &size.limits);
    let named = limits.filter_map(|limit| {
        let value = match (&limit.value, retention_bytes) {
            (LimitValue::Quantity { .. }, Some(retention)) if limit.shown == Shown::Bytes => {
                json!(retention.to_string())
            }
            (LimitValue::Quantity { text, .. } | LimitValue::Text(text), _) => json!(text),
            (LimitValue::Number(number), _) => json!(number),
        };
        Some((limit.agent.clone()?, value))
    });
    named.collect()
}

/// OAuth settings for the instance's clients, if an SSO provider is configured.
fn oauth(app: &App, instance: &Instance) -> Option<Value> {
    let provider = app.settings.sso_endpoints.as_ref()?;
    let own = || instance.organization_id.to_string();
    let tenant = instance.detail.foreign_organization.clone().unwrap_or_else(own).replace('\'', "");
    Some(json!({
        "tokenEndpointURI": provider.token_url,
        "jwksEndpointURI": provider.jwks_url,
        "validIssuerEndpointURI": provider.issuer,
        "userNameClaim": "clientId",
        "fallbackUserNameClaim": "preferred_username",
        "customClaimCheck": format!("@.rh-org-id == '{tenant}' || @.org_id == '{tenant}'"),
        "maximumSessionLifetime": if instance.reauthentication { SESSION_MS } else { 0 },
    }))
}
