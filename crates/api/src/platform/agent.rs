//! What agents over the network call: what shall be, what is, and that they are there.
//!
//! A caller is an agent by its cluster's token, and speaks for that cluster alone.

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
use model::reason::Coded as _;
use model::{ClusterId, Resources, name};
use serde::Deserialize;
use store::Scope;
use store::deployment::reporting::{self, Served};
use utoipa::IntoParams;
use wire::agent::{Heartbeat, Pulse, Report, Reports, Wish, Wishes};
use wire::cluster::request::NewNode;

use crate::body::Json;
use crate::caller::{AgentCaller, Call};
use crate::page::{Query, number};
use crate::{App, Problem};

/// How long an agent may wait for news.
const MAX_WAIT_SECS: i64 = 60;
/// How many reports one call takes.
const MAX_REPORTS: usize = 1000;
/// How long a reason and how many endpoints of a report are kept.
const MAX_REASON: usize = 2000;
const MAX_ENDPOINTS: usize = 64;
/// How many lines of a log.
const MAX_TAIL: usize = 200;
/// The least time between two looks at what has changed.
const LOOK_APART: Duration = Duration::from_millis(20);
/// When to look though nothing was heard: a lost signal costs latency only.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

fn is_news(found: &Wishes, seen: &str) -> bool {
    found.cursor != seen && !found.items.is_empty()
}

/// What an agent wants to know.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// Whether to answer with all that shall be, at once, and not only with what was not answered.
    #[param(value_type = Option<bool>)]
    all: Option<String>,
    /// How many seconds to wait for news, from 0 to 60; less if requests may take less.
    #[param(value_type = Option<i64>)]
    wait: Option<String>,
    /// The `cursor` of the last answer: the same again is no news.
    seen: Option<String>,
}

/// What its agent shall do: all of it at once, or what it has not answered as soon as there is some.
#[utoipa::path(get, path = "/api/v1/agent/desired", tag = "agents", security(("cluster_token" = [])),
    params(Asked), responses((status = 200, body = Wishes, description = "What shall be"), Problem))]
pub(crate) async fn agent_desired(
    Call(app, agent): Call<AgentCaller>,
    Query(asked): Query<Asked>,
) -> Result<Answer<Wishes>, Problem> {
    let all = match asked.all.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::field("all", "must be true or false")),
    };
    let wait = number("wait", asked.wait.as_deref(), 0, 0, MAX_WAIT_SECS)?;
    let wait = Duration::from_secs(wait.unsigned_abs()).min(app.settings.request_timeout / 5 * 4);
    if all {
        // What is new after this look has another cursor than what is open before it.
        let cursor = look(&app, agent.cluster, false).await?.cursor;
        return Ok(Answer(Wishes { cursor, ..look(&app, agent.cluster, true).await? }));
    }
    let seen = asked.seen.unwrap_or_default();
    // At least one look, however short the wait.
    let found = look(&app, agent.cluster, false).await?;
    if is_news(&found, &seen) {
        return Ok(Answer(found));
    }
    match tokio::time::timeout(wait, until_news(&app, agent.cluster, &seen)).await {
        Ok(news) => news.map(Answer),
        Err(_) => Ok(Answer(Wishes { items: Vec::new(), cursor: seen })),
    }
}

/// Returns when what is not answered is there and another than was seen, or the server stops.
async fn until_news(app: &App, cluster: ClusterId, seen: &str) -> Result<Wishes, Problem> {
    let (mut signal, mut stop) = (app.db.event_signal(), app.stop.clone());
    loop {
        signal.mark_unchanged();
        let found = look(app, cluster, false).await?;
        if is_news(&found, seen) {
            return Ok(found);
        }
        if stop.is_set() {
            return Ok(Wishes { items: Vec::new(), cursor: seen.to_owned() });
        }
        tokio::time::sleep(LOOK_APART).await;
        tokio::select! {
            _ = signal.changed() => {}
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = stop.told() => {}
        }
    }
}

async fn look(app: &App, cluster: ClusterId, all: bool) -> Result<Wishes, Problem> {
    let mut read = app.db.read().await?;
    let found = reporting::desired(&mut read, Served::Cluster(cluster), all).await?;
    let names = found.iter().map(|wish| format!("{} {}\n", wish.replica, wish.generation));
    let cursor = entropy::hash(&names.collect::<String>());
    // What can't be opened now is missing; who waits for it looks again by itself.
    let (found, _) = engine::sealed::open_all(&*app.seal, found).await;
    Ok(Wishes { items: found.into_iter().map(Wish::from).collect(), cursor })
}

/// Takes in what an agent found. What answers an old wish, or speaks of what is not there, changes
/// nothing.
#[utoipa::path(post, path = "/api/v1/agent/reports", tag = "agents",
    security(("cluster_token" = [])), request_body = Reports,
    responses((status = 204, description = "Taken in"), Problem))]
pub(crate) async fn agent_report(
    Call(app, agent): Call<AgentCaller>,
    Json(Reports { reports }): Json<Reports>,
) -> Result<StatusCode, Problem> {
    if reports.len() > MAX_REPORTS {
        return Err(Problem::field("reports", format!("at most {MAX_REPORTS} at once")));
    }
    if let Some(at) = reports.iter().position(|report| report.cluster != agent.cluster) {
        let detail = "is not the cluster of this token";
        return Err(Problem::forbidden_field(format!("reports[{at}].cluster"), detail));
    }
    let reports: Vec<_> = reports.into_iter().map(cut).collect();
    agent_reports::record(&app.db, &reports).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A report no longer than anybody reads.
fn cut(report: Report) -> model::agent::Report {
    let short = |text: String, most: usize| text.chars().take(most).collect();
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

/// The reason if it is short; else the beginning of its message.
fn bounded(reason: Reason) -> Reason {
    match serde_json::to_string(&reason) {
        Ok(text) if text.len() <= MAX_REASON => reason,
        _ => Reason::reported(reason.to_string().chars().take(MAX_REASON).collect::<String>()),
    }
}

/// Notes that an agent is there, and what its machines have.
#[utoipa::path(post, path = "/api/v1/agent/heartbeat", tag = "agents",
    security(("cluster_token" = [])), request_body = Heartbeat,
    responses((status = 200, body = Pulse, description = "Heard"), Problem))]
pub(crate) async fn agent_heartbeat(
    Call(app, agent): Call<AgentCaller>,
    Json(beat): Json<Heartbeat>,
) -> Result<Answer<Pulse>, Problem> {
    app.pulse.count(agent.cluster, app.db.now())?;
    let version = name::line("version", &beat.version, 100)?;
    let runtime = name::line("runtime", &beat.runtime, 100)?;
    let nodes = reported(beat.capacity, beat.nodes)?;
    let every = app.settings.patience.beat();
    let capacity_kept = match nodes {
        Some(nodes) => take_over(&app, agent.cluster, &nodes).await?,
        None => None,
    };
    let mut tx = app.db.begin(Actor::Agent).await?;
    store::cluster::hear(&mut tx, agent.cluster, &version, &runtime, every / 2).await?;
    tx.commit().await?;
    let next_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
    Ok(Answer(Pulse { cluster: agent.cluster, next_ms, capacity_kept }))
}

/// What an agent says that its machines have, checked.
fn reported(
    capacity: Option<Resources>,
    nodes: Option<Vec<NewNode>>,
) -> Result<Option<Vec<Node>>, Problem> {
    match (capacity, nodes) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Problem::field("nodes", "give either nodes or capacity")),
        (Some(capacity), None) => {
            cluster::total("capacity", &capacity)?;
            Ok(Some(vec![Node::only(capacity)]))
        }
        (None, Some(nodes)) => super::cluster::new_nodes(nodes).map(Some),
    }
}

/// Gives a cluster the nodes that its agent reports, if they are others; why not, if that can't be.
async fn take_over(app: &App, id: ClusterId, nodes: &[Node]) -> Result<Option<String>, Problem> {
    let now = store::cluster::get(&mut app.db.read().await?, Scope::All, id).await?;
    if is_made_of(&now, nodes) {
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

fn is_made_of(cluster: &Cluster, nodes: &[Node]) -> bool {
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
