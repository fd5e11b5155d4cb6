//! Status reports of agents about instances. Each instance is processed separately: an error is
//! logged and does not affect others.

use axum::http::StatusCode;
use model::InstanceId;
use model::event::Actor;
use model::instance::report::{self, Context, Outcome, Report};
use model::instance::{Instance, Reason, Status, Versions};
use model::kind::WireNames;
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

/// Maximum number of routes per instance.
const MAX_ROUTES: usize = 200;

/// Reported status of one instance.
#[derive(Default, Deserialize)]
#[serde(default)]
struct InstanceStatus {
    conditions: Option<Vec<Condition>>,
    versions: Option<Map<String, Value>>,
    routes: Option<Vec<RouteStatus>>,
    #[serde(rename = "adminServerURI")]
    admin_url: Option<String>,
}

/// A route to an instance.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RouteStatus {
    prefix: Option<String>,
    router: Option<String>,
}

impl InstanceStatus {
    fn report(self, words: &WireNames) -> Report {
        let text = |value: Option<String>| value.unwrap_or_default();
        let conditions = self.conditions.into_iter().flatten().map(|condition| report::Condition {
            condition_type: text(condition.r#type),
            status: text(condition.status),
            reason: text(condition.reason),
            message: text(condition.message),
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
            routes: routes.map(|route| (text(route.prefix), text(route.router))).collect(),
            admin_url: self.admin_url.filter(|url| !url.is_empty()),
        }
    }
}

/// Records the status of an agent's instances.
///
/// The body is an object with one status per instance ID, with `conditions`, `versions`, `routes`
/// and `adminServerURI`. IDs of other clusters are ignored; an error in one status does not affect
/// others.
#[utoipa::path(put, path = "/api/{api}/v1/agent-clusters/{id}/{plural}/status", tag = "agents",
    params(AgentKindPath), security(("cluster_token" = [])), request_body = BTreeMap<String, Object>,
    responses((status = 200, description = "Recorded"), Error))]
pub(crate) async fn agent_instance_report(
    Call(app, agent): Call<Agent>,
    Json(statuses): Json<Map<String, Value>>,
) -> Result<StatusCode, Error> {
    for (id, status) in statuses {
        // Placeholders that an agent keeps in reserve are not instances.
        let Ok(id) = id.parse::<InstanceId>() else { continue };
        match serde_json::from_value::<InstanceStatus>(status) {
            Ok(status) => record_or_log(&app, &agent, id, &status.report(&agent.kind.words)).await,
            Err(why) => tracing::warn!(instance = %id, %why, "parsing an instance status failed"),
        }
    }
    Ok(StatusCode::OK)
}

async fn record_or_log(app: &App, agent: &Agent, id: InstanceId, report: &Report) {
    if let Err(why) = record(app, agent, id, report).await {
        tracing::warn!(instance = %id, why, "recording an instance status failed");
    }
}

async fn record(app: &App, agent: &Agent, id: InstanceId, status: &Report) -> Result<(), String> {
    let store = |error: store::Error| error.to_string();
    let mut read = app.db.read().await.map_err(store)?;
    let current = match instance::get(&mut read, Scope::All, id).await {
        Err(store::Error::NotFound { .. }) => return Ok(()),
        other => other.map_err(store)?,
    };
    drop(read);
    // Most reports change nothing: they cost no transaction.
    if apply(app, agent, &current, status)?.is_none() {
        return Ok(());
    }
    let mut tx = app.db.begin(Actor::Agent).await.map_err(store)?;
    let current = instance::lock(&mut tx, Scope::All, id).await.map_err(store)?;
    let Some((updated, next)) = apply(app, agent, &current, status)? else { return Ok(()) };
    persist(&mut tx, agent, updated, next).await.map_err(store)?;
    tx.commit().await.map_err(store)
}

/// Applies a report. Returns the updated instance, if it belongs to this agent's cluster and
/// changed.
fn apply(
    app: &App,
    agent: &Agent,
    current: &Instance,
    status: &Report,
) -> Result<Option<(Instance, Outcome)>, String> {
    if current.cluster_id != Some(agent.cluster.id) || current.kind != agent.kind.name {
        return Ok(None);
    }
    let dns = agent.cluster.hosting.dns.as_deref();
    let site = Context { words: &agent.kind.words, dns, next_attempt: app.db.id() };
    report::apply(current, status, site).map_err(|error| error.to_string())
}

async fn persist(
    tx: &mut Tx,
    agent: &Agent,
    mut updated: Instance,
    next: Outcome,
) -> store::Result<()> {
    match next {
        Outcome::Stay => instance::save(tx, &mut updated, "reported").await,
        Outcome::Move(to, reason) => instance::transition(tx, &mut updated, to, reason).await,
        Outcome::Reschedule => reschedule(tx, agent, updated).await,
    }
}

/// Releases the instance's placement because its cluster rejected it for lack of capacity;
/// placement starts over.
async fn reschedule(tx: &mut Tx, agent: &Agent, mut updated: Instance) -> store::Result<()> {
    let from = updated.cluster_id.take();
    if let Some(held) = updated.deployment_id.take() {
        deployment::request_delete(tx, Scope::All, held).await?;
    }
    if let Some(from) = from {
        hosting::remove_free_units(tx, from, &agent.kind.unit(&updated.instance_type)).await?;
    }
    updated.host = None;
    updated.detail.placement = Some(tx.id());
    updated.detail.desired = Versions::default();
    updated.detail.routes.clear();
    updated.detail.is_agent_ready = false;
    let reason = Reason::InsufficientCapacity { cluster: agent.cluster.name.clone() };
    instance::transition(tx, &mut updated, Status::Accepted, reason).await
}
