//! Endpoints for fleetshard-compatible agents: cluster settings, desired instances, and status
//! reports.
//!
//! A caller is the agent of one cluster, by that cluster's token or OIDC account; everything else
//! is not found.

pub(crate) mod list;
pub(crate) mod report;
mod reserved;
pub(crate) mod status;
pub(crate) mod verification;

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use base::entropy;
use model::ClusterId;
use model::cluster::Cluster;
use model::event::Actor;
use model::kind::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::cluster::hosting;
use store::{Scope, agent_token, token};
use utoipa::{IntoParams, ToSchema};

use super::Error;
use super::tenant::{ApiKind, parameter};
use crate::caller::{Call, authorization, token_hash};
use crate::{App, oidc};

/// Path of a cluster's agent.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the agent reads it")]
pub(crate) struct AgentPath {
    /// API of a kind, such as `kafkas_mgmt`.
    api: String,
    /// Cluster ID, at its origin or in Paddock.
    id: String,
}

/// Path of a cluster's agent and a kind.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the agent reads it")]
pub(crate) struct AgentKindPath {
    /// API of a kind, such as `kafkas_mgmt`.
    api: String,
    /// Cluster ID, at its origin or in Paddock.
    id: String,
    /// Plural name of the kind, such as `kafkas`.
    plural: String,
}

/// The agent of a cluster.
pub(crate) struct Agent {
    /// Kind whose API is called.
    pub(crate) kind: Arc<Kind>,
    /// The only cluster that the agent acts for.
    pub(crate) cluster: Cluster,
}

impl FromRequestParts<App> for Agent {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let ApiKind(kind) = ApiKind::from_request_parts(parts, app).await?;
        let named = parameter(parts, app, "id").await.unwrap_or_default();
        let plural = parameter(parts, app, "plural").await;
        let found = identify(app, &kind, &named, &parts.headers).await;
        let cluster = found.map_err(IntoResponse::into_response)?;
        if plural.is_some_and(|plural| plural != kind.plural) {
            return Err(Error::path_not_found(parts.uri.path()).into_response());
        }
        record_heartbeat(app, &kind, &cluster).await.map_err(IntoResponse::into_response)?;
        Ok(Self { kind, cluster })
    }
}

/// Returns the named cluster if the caller is its agent.
async fn identify(
    app: &App,
    kind: &Kind,
    named: &str,
    headers: &HeaderMap,
) -> Result<Cluster, Error> {
    let identity = AgentIdentity::from_headers(app, headers).await?;
    let cluster = hosting::find(&mut app.db.read().await?, named).await?;
    let own = cluster.filter(|cluster| identity.is_agent_of(kind, cluster));
    own.ok_or_else(|| Error::not_found("cluster", named))
}

/// Identity of the caller of an agent endpoint.
enum AgentIdentity {
    /// An OIDC account.
    Account(String),
    /// The bearer of a cluster's token.
    Cluster(ClusterId),
    /// An authenticated caller that is not an agent: everything is not found.
    Other,
}

impl AgentIdentity {
    async fn from_headers(app: &App, headers: &HeaderMap) -> Result<Self, Error> {
        let bearer = authorization(headers);
        let Some((_, secret)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(Error::new(
                15,
                "Agent authentication required: send the cluster's token as Authorization: Bearer <token>.",
            ));
        };
        if oidc::is_jwt(secret) {
            let account = oidc::claims(app, secret).await?.client_id;
            return Ok(account.map_or(Self::Other, Self::Account));
        }
        let (hash, now) = (entropy::hash(secret), app.db.now());
        let mut read = app.db.read().await?;
        match agent_token::find(&mut read, &hash, now).await? {
            Some(cluster) => Ok(Self::Cluster(cluster)),
            None if token::find(&mut read, &token_hash(secret), now).await?.is_some() => {
                Ok(Self::Other)
            }
            None => Err(Error::new(15, "")),
        }
    }

    fn is_agent_of(&self, kind: &Kind, cluster: &Cluster) -> bool {
        match self {
            Self::Account(account) => *account == client_id(kind, cluster),
            Self::Cluster(id) => *id == cluster.id,
            Self::Other => false,
        }
    }
}

/// Client ID of a cluster's agent.
pub(crate) fn client_id(kind: &Kind, cluster: &Cluster) -> String {
    let waiting = &kind.words.waiting;
    let agent = waiting.strip_prefix("waiting_for_").unwrap_or(waiting);
    let agent = agent.strip_suffix("_operator").unwrap_or(agent).replace('_', "-");
    format!(
        "{agent}-agent-{}",
        cluster.foreign_id.clone().unwrap_or_else(|| cluster.id.to_string())
    )
}

/// Records a heartbeat: every request of a third-party agent counts as one.
async fn record_heartbeat(app: &App, kind: &Kind, cluster: &Cluster) -> Result<(), Error> {
    if !cluster.hosting.is_foreign || cluster.status.is_deleting() {
        return Ok(());
    }
    let min_interval = app.settings.heartbeat_timeouts.interval() / 2;
    let is_recent =
        cluster.agent.as_ref().is_some_and(|heartbeat| heartbeat.at + min_interval > app.db.now());
    if is_recent && cluster.status == model::cluster::Status::Ready {
        return Ok(());
    }
    let mut tx = app.db.begin(Actor::Agent).await?;
    store::cluster::record_heartbeat(
        &mut tx,
        cluster.id,
        THIRD_PARTY,
        &kind.words.operator,
        min_interval,
    )
    .await?;
    Ok(tx.commit().await?)
}

/// Stored version of third-party agents.
pub(super) const THIRD_PARTY: &str = "foreign";

/// Settings of a cluster for its agent.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentCluster {
    /// Spec.
    spec: AgentClusterSpec,
}

/// Settings of a cluster for its agent.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentClusterSpec {
    /// Network.
    net: Net,
    /// Number of nodes by instance type, if known.
    capacity: BTreeMap<String, Machines>,
    /// Observability settings; always empty.
    observability: Observability,
}

/// Network of a cluster.
#[derive(Serialize, ToSchema)]
pub(crate) struct Net {
    /// Whether the cluster is only reachable through a private network.
    private: bool,
}

/// Number of nodes.
#[derive(Serialize, ToSchema)]
pub(crate) struct Machines {
    /// Maximum number of nodes.
    #[serde(rename = "maxNodes")]
    max_nodes: u32,
}

/// Observability settings.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Observability {
    /// Always empty.
    #[serde(rename = "accessToken")]
    access_token: &'static str,
    /// Always empty.
    channel: &'static str,
    /// Always empty.
    repository: &'static str,
    /// Always empty.
    tag: &'static str,
}

/// Returns the settings of an agent's cluster.
#[utoipa::path(get, path = "/api/{api}/v1/agent-clusters/{id}", tag = "agents", params(AgentPath),
    security(("cluster_token" = [])),
    responses((status = 200, body = AgentCluster, description = "The cluster"), Error))]
pub(crate) async fn agent_cluster_get(
    Call(app, agent): Call<Agent>,
) -> Result<Answer<AgentCluster>, Error> {
    let mut read = app.db.read().await?;
    let cluster = store::cluster::get(&mut read, Scope::All, agent.cluster.id).await?;
    let regular_type =
        agent.kind.types.iter().find(|candidate| !agent.kind.is_trial(&candidate.id));
    let machines = cluster.hosting.machines.zip(regular_type);
    let capacity =
        machines.map(|(max_nodes, regular_type)| (regular_type.id.clone(), Machines { max_nodes }));
    Ok(Answer(AgentCluster {
        spec: AgentClusterSpec {
            net: Net { private: cluster.hosting.is_private },
            capacity: capacity.into_iter().collect(),
            observability: Observability::default(),
        },
    }))
}
