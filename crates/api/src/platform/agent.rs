//! Endpoints for remote agents: desired state, reports and heartbeats.
//!
//! A cluster token authenticates an agent, which acts for that cluster only.

use std::time::Duration;

use axum::Json as Answer;
use axum::http::StatusCode;
use base::entropy;
use engine::agent_reports;
use model::agent::Observed;
use model::cluster::{self, Cluster, NewNode as Node};
use model::deployment::Reason;
use model::event::Actor;
use model::log::LogLine;
use model::reason::StatusReason as _;
use model::{ClusterId, Resources, name};
use serde::Deserialize;
use store::Scope;
use store::deployment::reports::{self, ServedClusters};
use utoipa::IntoParams;
use wire::agent::{DesiredReplica, DesiredState, Heartbeat, HeartbeatResponse, Report, Reports};
use wire::cluster::request::NewNode;

use crate::body::Json;
use crate::caller::{AgentCaller, Call};
use crate::page::{Query, number};
use crate::{App, Problem};

/// Maximum time that an agent may wait for changes.
const MAX_WAIT_SECS: i64 = 60;
/// Maximum number of reports per request.
const MAX_REPORTS: usize = 1000;
/// Maximum length of a reason and number of endpoints stored per report.
const MAX_REASON: usize = 2000;
const MAX_ENDPOINTS: usize = 64;
/// Maximum number of log lines stored per report.
const MAX_TAIL: usize = 200;
/// Minimum interval between two queries for changes.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Polling interval without a signal: a lost signal only costs latency.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

fn has_changes(found: &DesiredState, seen: &str) -> bool {
    found.cursor != seen && !found.items.is_empty()
}

/// Query for the desired state.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DesiredQuery {
    /// Whether to return the complete desired state immediately instead of only unacknowledged
    /// changes.
    #[param(value_type = Option<bool>)]
    all: Option<String>,
    /// Seconds to wait for changes, from 0 to 60; capped by the request timeout.
    #[param(value_type = Option<i64>)]
    wait: Option<String>,
    /// The `cursor` of the last response; the same state is not returned again.
    seen: Option<String>,
}

/// Returns the desired state of the agent's cluster.
///
/// Returns the complete state immediately (`all=true`), or waits for unacknowledged changes.
#[utoipa::path(get, path = "/api/v1/agent/desired", tag = "agents", security(("cluster_token" = [])),
    params(DesiredQuery), responses((status = 200, body = DesiredState, description = "Desired state"), Problem))]
pub(crate) async fn agent_desired(
    Call(app, agent): Call<AgentCaller>,
    Query(query): Query<DesiredQuery>,
) -> Result<Answer<DesiredState>, Problem> {
    let all = match query.all.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::field("all", "must be true or false")),
    };
    let wait = number("wait", query.wait.as_deref(), 0, 0, MAX_WAIT_SECS)?;
    let wait = Duration::from_secs(wait.unsigned_abs()).min(app.settings.request_timeout / 5 * 4);
    if all {
        // Changes after this query have another cursor than those pending before it.
        let cursor = desired_state(&app, agent.cluster, false).await?.cursor;
        return Ok(Answer(DesiredState {
            cursor,
            ..desired_state(&app, agent.cluster, true).await?
        }));
    }
    let seen = query.seen.unwrap_or_default();
    // Query at least once, however short the wait.
    let found = desired_state(&app, agent.cluster, false).await?;
    if has_changes(&found, &seen) {
        return Ok(Answer(found));
    }
    match tokio::time::timeout(wait, wait_for_changes(&app, agent.cluster, &seen)).await {
        Ok(changes) => changes.map(Answer),
        Err(_) => Ok(Answer(DesiredState { items: Vec::new(), cursor: seen })),
    }
}

/// Returns when there are unacknowledged changes other than `seen`, or when the server stops.
async fn wait_for_changes(
    app: &App,
    cluster: ClusterId,
    seen: &str,
) -> Result<DesiredState, Problem> {
    let (mut signal, mut stop) = (app.db.event_signal(), app.stop.clone());
    loop {
        signal.mark_unchanged();
        let found = desired_state(app, cluster, false).await?;
        if has_changes(&found, seen) {
            return Ok(found);
        }
        if stop.is_set() {
            return Ok(DesiredState { items: Vec::new(), cursor: seen.to_owned() });
        }
        tokio::time::sleep(MIN_POLL_INTERVAL).await;
        tokio::select! {
            _ = signal.changed() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = stop.signalled() => {}
        }
    }
}

async fn desired_state(app: &App, cluster: ClusterId, all: bool) -> Result<DesiredState, Problem> {
    let mut read = app.db.read().await?;
    let found = reports::desired(&mut read, ServedClusters::Cluster(cluster), all).await?;
    let names = found.iter().map(|desired| format!("{} {}\n", desired.replica, desired.generation));
    let cursor = entropy::hash(&names.collect::<String>());
    // Secrets that cannot be decrypted now are missing; the agent retries.
    drop(read);
    let (mut found, _) = engine::secrets::decrypt_all(&*app.seal, found).await;
    engine::credentials::add_pull_credentials(&app.db, &*app.seal, &mut found).await?;
    Ok(DesiredState { items: found.into_iter().map(DesiredReplica::from).collect(), cursor })
}

/// Records the observed state reported by an agent.
///
/// Reports for an outdated generation or an unknown replica are ignored.
#[utoipa::path(post, path = "/api/v1/agent/reports", tag = "agents",
    security(("cluster_token" = [])), request_body = Reports,
    responses((status = 204, description = "Recorded"), Problem))]
pub(crate) async fn agent_report(
    Call(app, agent): Call<AgentCaller>,
    Json(Reports { reports }): Json<Reports>,
) -> Result<StatusCode, Problem> {
    if reports.len() > MAX_REPORTS {
        return Err(Problem::field("reports", format!("must have at most {MAX_REPORTS} items")));
    }
    if let Some(at) = reports.iter().position(|report| report.cluster != agent.cluster) {
        let detail = "is not the cluster of this token";
        return Err(Problem::forbidden_field(format!("reports[{at}].cluster"), detail));
    }
    let reports: Vec<_> = reports.into_iter().map(truncated).collect();
    agent_reports::record(&app.db, &reports).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Truncates a report to the stored size.
fn truncated(report: Report) -> model::agent::Report {
    let short = |text: String, max: usize| text.chars().take(max).collect();
    let observed = match report.observed {
        Observed::Running { endpoints } => {
            let few = endpoints.into_iter().take(MAX_ENDPOINTS);
            Observed::Running { endpoints: few.map(|text| short(text, 255)).collect() }
        }
        Observed::Restarting { reason } => Observed::Restarting { reason: bounded(reason) },
        Observed::Failed { reason } => Observed::Failed { reason: bounded(reason) },
        other => other,
    };
    let (replica, cluster) = (report.replica.into(), report.cluster);
    let skip = report.tail.len().saturating_sub(MAX_TAIL);
    let tail = report.tail.into_iter().skip(skip);
    let tail = tail.map(|line| LogLine { text: short(line.text, MAX_REASON), ..line }).collect();
    model::agent::Report { replica, cluster, generation: report.generation, observed, tail }
}

/// Returns the reason if it is short, otherwise the start of its message.
fn bounded(reason: Reason) -> Reason {
    match serde_json::to_string(&reason) {
        Ok(text) if text.len() <= MAX_REASON => reason,
        _ => Reason::reported(reason.to_string().chars().take(MAX_REASON).collect::<String>()),
    }
}

/// Records a heartbeat and the capacity of the agent's nodes.
#[utoipa::path(post, path = "/api/v1/agent/heartbeat", tag = "agents",
    security(("cluster_token" = [])), request_body = Heartbeat,
    responses((status = 200, body = HeartbeatResponse, description = "Recorded"), Problem))]
pub(crate) async fn agent_heartbeat(
    Call(app, agent): Call<AgentCaller>,
    Json(heartbeat): Json<Heartbeat>,
) -> Result<Answer<HeartbeatResponse>, Problem> {
    app.pulse.count(agent.cluster, app.db.now())?;
    let version = name::line("version", &heartbeat.version, 100)?;
    let runtime = name::line("runtime", &heartbeat.runtime, 100)?;
    let nodes = reported_nodes(heartbeat.capacity, heartbeat.nodes)?;
    let every = app.settings.heartbeat_timeouts.interval();
    let capacity_kept = match nodes {
        Some(nodes) => apply_nodes(&app, agent.cluster, &nodes).await?,
        None => None,
    };
    let mut tx = app.db.begin(Actor::Agent).await?;
    store::cluster::record_heartbeat(&mut tx, agent.cluster, &version, &runtime, every / 2).await?;
    tx.commit().await?;
    let next_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
    Ok(Answer(HeartbeatResponse { cluster: agent.cluster, next_ms, capacity_kept }))
}

/// Validates the nodes that an agent reports.
fn reported_nodes(
    capacity: Option<Resources>,
    nodes: Option<Vec<NewNode>>,
) -> Result<Option<Vec<Node>>, Problem> {
    match (capacity, nodes) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Problem::field("nodes", "set either nodes or capacity")),
        (Some(capacity), None) => {
            cluster::check_capacity("capacity", &capacity)?;
            Ok(Some(vec![Node::only(capacity)]))
        }
        (None, Some(nodes)) => super::cluster::new_nodes(nodes).map(Some),
    }
}

/// Applies the reported nodes to the cluster if they differ. Returns the reason if that is not
/// possible.
async fn apply_nodes(app: &App, id: ClusterId, nodes: &[Node]) -> Result<Option<String>, Problem> {
    let cluster = store::cluster::get(&mut app.db.read().await?, Scope::All, id).await?;
    if has_nodes(&cluster, nodes) {
        return Ok(None);
    }
    let mut tx = app.db.begin(Actor::Agent).await?;
    match store::cluster::set_nodes(&mut tx, id, nodes).await {
        Ok(_) => tx.commit().await?,
        Err(store::Error::Conflict(why)) => return Ok(Some(why)),
        Err(error) => return Err(error.into()),
    }
    Ok(None)
}

fn has_nodes(cluster: &Cluster, nodes: &[Node]) -> bool {
    let is_same = |node: &Node| {
        let known = cluster.nodes.iter().find(|known| known.name == node.name);
        known.is_some_and(|known| {
            let total: Resources =
                known.capacity.iter().map(|(kind, c)| (kind.clone(), c.total)).collect();
            total == node.capacity && known.labels == node.labels
        })
    };
    cluster.nodes.len() == nodes.len() && nodes.iter().all(is_same)
}
