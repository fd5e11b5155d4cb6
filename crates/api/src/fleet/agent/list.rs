//! What shall be on an agent's cluster: all instances there, each with what its agent needs to make it.
//!
//! One that can't be shown now is left out and logged: agents leave alone what is missing.

use axum::Json as Answer;
use engine::instance::credentials;
use futures_util::StreamExt;
use model::instance::{Instance, Status};
use model::kind::{Kind, LimitValue, Shown, Size};
use port::Client;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::{Page, Scope, instance};
use utoipa::ToSchema;

use super::{Agent, AgentKindPath, reserved};
use crate::App;
use crate::caller::Call;
use crate::fleet::Error;

/// How many instances one cluster can have.
const MAX_INSTANCES: i64 = 100_000;
/// How many secrets are opened at once.
const AT_ONCE: usize = 16;
/// How long a session lasts before its client must sign in again, in milliseconds.
const SESSION_MS: i64 = 299_000;

/// What shall be on a cluster. What is not named is left alone.
#[derive(Serialize, ToSchema)]
pub(crate) struct ManagedList {
    /// What it is a list of: `ManagedKafkaList`.
    kind: String,
    /// Each with `id`, `kind`, `metadata` (`name`, `namespace`, `annotations`, `labels`) and `spec`
    /// (`capacity`, `owners`, `endpoint`, `versions`, `deleted`, and for its sign-in `serviceAccounts`
    /// and `oauth`), in the kind's words.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
}

/// What shall be on the agent's cluster, with secrets. What is not named is to be left alone.
#[utoipa::path(get, path = "/api/{api}/v1/agent-clusters/{id}/{plural}", tag = "agents",
    params(AgentKindPath), security(("cluster_token" = [])),
    responses((status = 200, body = ManagedList, description = "All of it"), Error))]
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
    let shown = all.into_iter().filter(|one| one.status.is_with_agent() && one.host.is_some());
    let items = futures_util::stream::iter(shown.map(|one| item(&app, kind, one)));
    let items = items.buffered(AT_ONCE).filter_map(std::future::ready);
    let mut items: Vec<Value> = items.collect().await;
    items.extend(reserved::items(&app.rules.pools(), &agent.cluster, kind));
    Ok(Answer(ManagedList { kind: kind.words.agent_list.clone(), items }))
}

async fn item(app: &App, kind: &Kind, of: Instance) -> Option<Value> {
    let size = kind.type_of(&of.instance_type).and_then(|one| one.size(&of.size));
    // What shall go needs neither a size nor secrets: nothing may keep it.
    if of.status == Status::Deprovision {
        return Some(managed(app, kind, &of, size, None));
    }
    let Some(size) = size else {
        tracing::warn!(instance = %of.id, "its size is not in the catalog: its agent does not see it");
        return None;
    };
    match credentials(&app.db, &*app.seal, of.id).await {
        Ok(client) => Some(managed(app, kind, &of, Some(size), client.as_ref())),
        Err(why) => {
            tracing::warn!(instance = %of.id, %why, "its secrets can't be opened: its agent does not see it");
            None
        }
    }
}

fn managed(
    app: &App,
    kind: &Kind,
    of: &Instance,
    size: Option<&Size>,
    client: Option<&Client>,
) -> Value {
    let (words, domain) = (&kind.words, &kind.words.agent_domain);
    let mut versions = json!({
        words.version.as_str(): of.detail.desired.service,
        words.operator.as_str(): of.detail.desired.operator,
    });
    if let Some(word) = &words.ibp {
        versions[word] = json!(of.detail.desired.protocol);
    }
    let mut spec = json!({
        "capacity": capacity(size, of.detail.retention_bytes),
        "owners": [of.owner],
        "endpoint": {words.agent_host.as_str(): of.host},
        "versions": versions,
        "deleted": of.status == Status::Deprovision,
    });
    if let Some(client) = client {
        let password = client.secret.reveal();
        spec["serviceAccounts"] =
            json!([{"name": "canary", "principal": client.id, "password": password}]);
        if let Some(oauth) = oauth(app, of) {
            spec["oauth"] = oauth;
        }
    }
    let quota = size.map(|size| size.quota_consumed.to_string()).unwrap_or_default();
    let profile = format!("{domain}/{}InstanceProfile", kind.name);
    json!({
        "id": of.id,
        "kind": words.agent_object,
        "metadata": {
            "name": of.name,
            "namespace": of.namespace(),
            "annotations": {
                format!("{domain}/id"): of.id,
                format!("{domain}/placementId"): of.detail.placement,
            },
            "labels": {
                format!("{profile}Type"): of.instance_type,
                format!("{profile}QuotaConsumed"): quota,
                format!("{domain}/suspended"): of.status.is_resting().to_string(),
            },
        },
        "spec": spec,
    })
}

/// What its users may do, in the agents' words.
pub(super) fn capacity(size: Option<&Size>, retention_bytes: Option<i64>) -> Map<String, Value> {
    let limits = size.iter().flat_map(|size| &size.limits);
    let named = limits.filter_map(|limit| {
        let value = match (&limit.value, retention_bytes) {
            (LimitValue::Quantity { .. }, Some(kept)) if limit.shown == Shown::Bytes => {
                json!(kept.to_string())
            }
            (LimitValue::Quantity { text, .. } | LimitValue::Text(text), _) => json!(text),
            (LimitValue::Number(number), _) => json!(number),
        };
        Some((limit.agent.clone()?, value))
    });
    named.collect()
}

/// Whom its clients sign in with, if that is known.
fn oauth(app: &App, of: &Instance) -> Option<Value> {
    let provider = app.settings.sign_in.as_ref()?;
    let own = || of.organization_id.to_string();
    let tenant = of.detail.foreign_organization.clone().unwrap_or_else(own).replace('\'', "");
    Some(json!({
        "tokenEndpointURI": provider.token_url,
        "jwksEndpointURI": provider.jwks_url,
        "validIssuerEndpointURI": provider.issuer,
        "userNameClaim": "clientId",
        "fallbackUserNameClaim": "preferred_username",
        "customClaimCheck": format!("@.rh-org-id == '{tenant}' || @.org_id == '{tenant}'"),
        "maximumSessionLifetime": if of.reauthentication { SESSION_MS } else { 0 },
    }))
}
