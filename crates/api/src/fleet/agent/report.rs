//! What an agent says of its instances. Each is taken in by itself: what is wrong with one is logged and
//! keeps no other.

use axum::http::StatusCode;
use model::InstanceId;
use model::event::Actor;
use model::instance::report::{self, Report, Site, Then};
use model::instance::{Instance, Reason, Status, Versions};
use model::kind::Words;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::cluster::hosting;
use store::{Scope, Tx, deployment, instance};

use super::status::Condition;
use super::{Agent, AgentKindPath};
use crate::App;
use crate::caller::Call;
use crate::fleet::Error;
use crate::fleet::body::Json;

/// How many routes of an instance are believed.
const MAX_ROUTES: usize = 200;

/// What an agent says of one instance.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    conditions: Option<Vec<Condition>>,
    versions: Option<Map<String, Value>>,
    routes: Option<Vec<SaidRoute>>,
    #[serde(rename = "adminServerURI")]
    admin_url: Option<String>,
}

/// What leads to it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SaidRoute {
    prefix: Option<String>,
    router: Option<String>,
}

impl Said {
    fn report(self, words: &Words) -> Report {
        let text = |of: Option<String>| of.unwrap_or_default();
        let conditions = self.conditions.into_iter().flatten().map(|one| report::Condition {
            about: text(one.r#type),
            status: text(one.status),
            reason: text(one.reason),
            message: text(one.message),
        });
        let versions = self.versions.unwrap_or_default();
        let version = |word: &str| versions.get(word).and_then(Value::as_str).unwrap_or_default();
        let routes = self.routes.into_iter().flatten().take(MAX_ROUTES);
        Report {
            conditions: conditions.collect(),
            actual: Versions {
                operator: version(&words.operator).to_owned(),
                service: version(&words.version).to_owned(),
                protocol: words.ibp.as_deref().map(version).unwrap_or_default().to_owned(),
            },
            routes: routes.map(|one| (text(one.prefix), text(one.router))).collect(),
            admin_url: self.admin_url.filter(|url| !url.is_empty()),
        }
    }
}

/// Takes in what an agent says of its instances: an object with one status for each id, with
/// `conditions`, `versions`, `routes` and `adminServerURI`. Ids of other clusters are ignored, and what is
/// wrong with one keeps no other.
#[utoipa::path(put, path = "/api/{api}/v1/agent-clusters/{id}/{plural}/status", tag = "agents",
    params(AgentKindPath), security(("cluster_token" = [])), request_body = BTreeMap<String, Object>,
    responses((status = 200, description = "Taken in"), Error))]
pub(crate) async fn agent_instance_report(
    Call(app, agent): Call<Agent>,
    Json(all): Json<Map<String, Value>>,
) -> Result<StatusCode, Error> {
    for (id, said) in all {
        // What an agent keeps in reserve is not an instance.
        let Ok(id) = id.parse::<InstanceId>() else { continue };
        match serde_json::from_value::<Said>(said) {
            Ok(said) => take_in_or_log(&app, &agent, id, &said.report(&agent.kind.words)).await,
            Err(why) => tracing::warn!(instance = %id, %why, "what its agent says can't be read"),
        }
    }
    Ok(StatusCode::OK)
}

async fn take_in_or_log(app: &App, agent: &Agent, id: InstanceId, report: &Report) {
    if let Err(why) = take_in(app, agent, id, report).await {
        tracing::warn!(instance = %id, why, "what its agent says is not taken in");
    }
}

async fn take_in(app: &App, agent: &Agent, id: InstanceId, said: &Report) -> Result<(), String> {
    let store = |error: store::Error| error.to_string();
    let mut read = app.db.read().await.map_err(store)?;
    let seen = match instance::get(&mut read, Scope::All, id).await {
        Err(store::Error::NotFound { .. }) => return Ok(()),
        other => other.map_err(store)?,
    };
    drop(read);
    // Most reports are no news: they cost no transaction.
    if apply(app, agent, &seen, said)?.is_none() {
        return Ok(());
    }
    let mut tx = app.db.begin(Actor::Agent).await.map_err(store)?;
    let seen = instance::take(&mut tx, Scope::All, id).await.map_err(store)?;
    let Some((now, then)) = apply(app, agent, &seen, said)? else { return Ok(()) };
    carry_out(&mut tx, agent, now, then).await.map_err(store)?;
    tx.commit().await.map_err(store)
}

/// The instance after the report, if it is this agent's and the report is news.
fn apply(
    app: &App,
    agent: &Agent,
    seen: &Instance,
    said: &Report,
) -> Result<Option<(Instance, Then)>, String> {
    if seen.cluster_id != Some(agent.cluster.id) || seen.kind != agent.kind.name {
        return Ok(None);
    }
    let dns = agent.cluster.hosting.dns.as_deref();
    let site = Site { words: &agent.kind.words, dns, next_try: app.db.id() };
    report::apply(seen, said, site).map_err(|odd| odd.to_string())
}

async fn carry_out(tx: &mut Tx, agent: &Agent, mut now: Instance, then: Then) -> store::Result<()> {
    match then {
        Then::Stay => instance::save(tx, &mut now, "reported").await,
        Then::Move(to, reason) => instance::transition(tx, &mut now, to, reason).await,
        Then::Elsewhere => move_on(tx, agent, now).await,
    }
}

/// Its cluster has no room for it after all: it gives up its place, and looks for another.
async fn move_on(tx: &mut Tx, agent: &Agent, mut now: Instance) -> store::Result<()> {
    let from = now.cluster_id.take();
    if let Some(held) = now.deployment_id.take() {
        deployment::request_delete(tx, Scope::All, held).await?;
    }
    if let Some(from) = from {
        hosting::close(tx, from, &agent.kind.unit(&now.instance_type)).await?;
    }
    now.host = None;
    now.detail.placement = Some(tx.id());
    now.detail.desired = Versions::default();
    now.detail.routes.clear();
    now.detail.is_agent_ready = false;
    let reason = Reason::InsufficientCapacity { cluster: agent.cluster.name.clone() };
    instance::transition(tx, &mut now, Status::Accepted, reason).await
}
