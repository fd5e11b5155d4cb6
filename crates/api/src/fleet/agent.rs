//! What the agents of fleet managers call: what their cluster is about, what shall be on it, and what is.
//!
//! A caller is the agent of one cluster, by that cluster's token or as its account; whatever else it asks
//! for is not there.

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
use super::tenant::{Of, parameter};
use crate::caller::{Call, authorization};
use crate::{App, oidc};

/// Which cluster, of whose agents.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the agent reads it")]
pub(crate) struct AgentPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    api: String,
    /// The cluster's id where it was made, or here.
    id: String,
}

/// The same, and the kind's name for many.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path; the extractor of the agent reads it")]
pub(crate) struct AgentKindPath {
    /// The API of a kind, such as `kafkas_mgmt`.
    api: String,
    /// The cluster's id where it was made, or here.
    id: String,
    /// The kind's name for many, such as `kafkas`.
    plural: String,
}

/// The agent of a cluster.
pub(crate) struct Agent {
    /// The kind whose API it calls.
    pub(crate) kind: Arc<Kind>,
    /// The only cluster that it speaks for.
    pub(crate) cluster: Cluster,
}

impl FromRequestParts<App> for Agent {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let Of(kind) = Of::from_request_parts(parts, app).await?;
        let named = parameter(parts, app, "id").await.unwrap_or_default();
        let plural = parameter(parts, app, "plural").await;
        let found = identify(app, &kind, &named, &parts.headers).await;
        let cluster = found.map_err(IntoResponse::into_response)?;
        if plural.is_some_and(|plural| plural != kind.plural) {
            return Err(Error::nothing_here(parts.uri.path()).into_response());
        }
        hear(app, &kind, &cluster).await.map_err(IntoResponse::into_response)?;
        Ok(Self { kind, cluster })
    }
}

/// The cluster that is named, if the caller is its agent.
async fn identify(
    app: &App,
    kind: &Kind,
    named: &str,
    headers: &HeaderMap,
) -> Result<Cluster, Error> {
    let speaker = Speaker::of(app, headers).await?;
    let cluster = hosting::find(&mut app.db.read().await?, named).await?;
    let its = cluster.filter(|on| speaker.is_agent_of(kind, on));
    its.ok_or_else(|| Error::not_found("cluster", named))
}

/// Who calls, as far as agents go.
enum Speaker {
    /// An account of the OpenID provider.
    Account(String),
    /// The bearer of a cluster's token.
    Cluster(ClusterId),
    /// Somebody who is known, but not as an agent: there is nothing here for them.
    Other,
}

impl Speaker {
    async fn of(app: &App, headers: &HeaderMap) -> Result<Self, Error> {
        let bearer = authorization(headers);
        let Some((_, secret)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(Error::new(15, "Agents show their token: send Authorization: Bearer."));
        };
        if oidc::is_jwt(secret) {
            let account = oidc::claims(app, secret).await?.client_id;
            return Ok(account.map_or(Self::Other, Self::Account));
        }
        let (hash, now) = (entropy::hash(secret), app.db.now());
        let mut read = app.db.read().await?;
        match agent_token::find(&mut read, &hash, now).await? {
            Some(of) => Ok(Self::Cluster(of)),
            None if token::find(&mut read, &hash, now).await?.is_some() => Ok(Self::Other),
            None => Err(Error::new(15, "")),
        }
    }

    fn is_agent_of(&self, kind: &Kind, on: &Cluster) -> bool {
        match self {
            Self::Account(account) => *account == client_id(kind, on),
            Self::Cluster(id) => *id == on.id,
            Self::Other => false,
        }
    }
}

/// What the agent of a cluster signs in as.
pub(crate) fn client_id(kind: &Kind, on: &Cluster) -> String {
    let waiting = &kind.words.waiting;
    let agent = waiting.strip_prefix("waiting_for_").unwrap_or(waiting);
    let agent = agent.strip_suffix("_operator").unwrap_or(agent).replace('_', "-");
    format!("{agent}-agent-{}", on.foreign_id.clone().unwrap_or_else(|| on.id.to_string()))
}

/// Every call of an agent that is known as such is a sign of life.
async fn hear(app: &App, kind: &Kind, on: &Cluster) -> Result<(), Error> {
    if !on.hosting.is_foreign || on.status.is_leaving() {
        return Ok(());
    }
    let apart = app.settings.patience.beat() / 2;
    let is_recent = on.agent.as_ref().is_some_and(|heard| heard.at + apart > app.db.now());
    if is_recent && on.status == model::cluster::Status::Ready {
        return Ok(());
    }
    let mut tx = app.db.begin(Actor::Agent).await?;
    store::cluster::hear(&mut tx, on.id, FOREIGN, &kind.words.operator, apart).await?;
    Ok(tx.commit().await?)
}

/// What stands for the version of an agent that is not Paddock's.
pub(super) const FOREIGN: &str = "foreign";

/// What a cluster is about.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentCluster {
    /// What its agent should know.
    spec: AgentClusterSpec,
}

/// What a cluster's agent should know.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentClusterSpec {
    /// How it is reached.
    net: Net,
    /// How many machines there are for each instance type, as far as it was said.
    capacity: BTreeMap<String, Machines>,
    /// Where it finds what observes it; Paddock has nothing to say here.
    observability: Observability,
}

/// How a cluster is reached.
#[derive(Serialize, ToSchema)]
pub(crate) struct Net {
    /// Through a private network only?
    private: bool,
}

/// How many machines there are.
#[derive(Serialize, ToSchema)]
pub(crate) struct Machines {
    /// At most so many.
    #[serde(rename = "maxNodes")]
    max_nodes: u32,
}

/// Where a cluster's agent finds what observes it.
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

/// What an agent should know of its cluster.
#[utoipa::path(get, path = "/api/{api}/v1/agent-clusters/{id}", tag = "agents", params(AgentPath),
    security(("cluster_token" = [])),
    responses((status = 200, body = AgentCluster, description = "The cluster"), Error))]
pub(crate) async fn agent_cluster_get(
    Call(app, agent): Call<Agent>,
) -> Result<Answer<AgentCluster>, Error> {
    let mut read = app.db.read().await?;
    let on = store::cluster::get(&mut read, Scope::All, agent.cluster.id).await?;
    let main = agent.kind.types.iter().find(|one| !agent.kind.is_trial(&one.id));
    let machines = on.hosting.machines.zip(main);
    let capacity = machines.map(|(max_nodes, main)| (main.id.clone(), Machines { max_nodes }));
    Ok(Answer(AgentCluster {
        spec: AgentClusterSpec {
            net: Net { private: on.hosting.is_private },
            capacity: capacity.into_iter().collect(),
            observability: Observability::default(),
        },
    }))
}
