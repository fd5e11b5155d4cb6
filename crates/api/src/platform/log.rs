//! Logs of deployments.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use model::cluster::Provider;
use model::deployment::Status;
use model::log::{Cursor, LogLine, LogsFrom};
use model::replica::Replica;
use model::{DeploymentId, ReplicaId};
use serde::Deserialize;
use store::Scope;
use utoipa::IntoParams;
use wire::log::Line;

use crate::caller::{Call, From as Address};
use crate::edge::stream::OpenStream;
use crate::logs::Lines;
use crate::page::{Query, flag, id, number};
use crate::{App, Problem};

/// Media type of logs as JSON lines.
pub(crate) const NDJSON: &str = "application/x-ndjson";
/// Number and interval of checks whether a replica whose log has ended has ended as well.
const END_CHECKS: usize = 20;
const END_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Log query.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogFilter {
    /// Whether to stream new lines until all replicas have ended.
    #[param(value_type = Option<bool>)]
    follow: Option<String>,
    /// Filters by replica number.
    #[param(value_type = Option<i64>)]
    replica: Option<String>,
    /// Number of last lines of each replica, from 0 to 100000.
    #[param(value_type = Option<i64>)]
    tail: Option<String>,
    /// Cursor after which to start: the `next` of a line. Requires `replica`.
    after: Option<String>,
}

/// Returns the logs of a deployment's replicas.
///
/// Plain text, or JSON lines with `Accept: application/x-ndjson`. The last lines of ended replicas
/// are retained.
#[utoipa::path(get, path = "/api/v1/deployments/{id}/logs", tag = "deployments",
    params(("id" = String, Path, description = "Deployment ID"), LogFilter),
    responses((status = 200, description = "Log",
        content((String = "text/plain"), (Line = "application/x-ndjson"))), Problem))]
pub(crate) async fn deployment_logs(
    Call(app, caller): Call,
    Address(address): Address,
    Path(text): Path<String>,
    headers: HeaderMap,
    Query(filter): Query<LogFilter>,
) -> Result<Response, Problem> {
    let id: DeploymentId = id("deployment", &text)?;
    let (only, from) = filter.checked()?;
    let follow = flag("follow", filter.follow.as_deref())?;
    let mut read = app.db.read().await?;
    let found = store::deployment::get(&mut read, caller.scope(), id).await?;
    let mut replicas = store::deployment::replica::list(&mut read, id).await?;
    replicas.retain(|replica| only.is_none_or(|number| number == replica.id.number));
    if let Some(number) = only.filter(|_| replicas.is_empty()) {
        return Err(Problem::not_found("replica", &number.to_string()));
    }
    if found.spec.image.is_none() {
        return Err(Problem::conflict("The deployment has no image and therefore no logs."));
    }
    drop(read);
    let open = OpenStream::new(&app, &caller, address).await?;
    let mut streams = Vec::new();
    for replica in &replicas {
        let lines = lines(&app, replica, &from, follow).await?;
        let number = replica.id.number;
        streams.push(lines.map(move |line| Line::new(number, line)).boxed());
    }
    let lines = open.guard(stream::select_all(streams));
    Ok(respond(lines.boxed(), wants_json(&headers), replicas.len() > 1))
}

impl LogFilter {
    fn checked(&self) -> Result<(Option<u32>, LogsFrom), Problem> {
        let max = i64::from(u32::MAX);
        let only = self.replica.as_deref().map(|text| number("replica", Some(text), 0, 0, max));
        let only = only.transpose()?.map(|n| u32::try_from(n).unwrap_or_default());
        let tail = self.tail.as_deref().map(|text| number("tail", Some(text), 0, 0, 100_000));
        let tail = tail.transpose()?.map(|n| usize::try_from(n).unwrap_or_default());
        let from = match (&self.after, tail) {
            (Some(_), Some(_)) => {
                return Err(Problem::field("after", "must not be combined with tail"));
            }
            (Some(_), None) if only.is_none() => {
                return Err(Problem::field(
                    "after",
                    "requires replica: it is a position in one replica's log",
                ));
            }
            (Some(after), None) => LogsFrom::After(Cursor(after.clone())),
            (None, Some(count)) => LogsFrom::Last(count),
            (None, None) => LogsFrom::Start,
        };
        Ok((only, from))
    }
}

/// Streams the log of one replica; the retained lines if it has ended.
async fn lines(
    app: &App,
    replica: &Replica,
    from: &LogsFrom,
    follow: bool,
) -> Result<Lines, Problem> {
    let has_ended = matches!(replica.status, Status::Completed | Status::Failed);
    if let Some(place) = replica.place.as_ref().filter(|_| !has_ended) {
        let cluster =
            store::cluster::get(&mut app.db.read().await?, Scope::All, place.cluster).await?;
        let (id, from) = (replica.id, from.clone());
        let lines = match cluster.provider {
            Provider::Local => app.logs.logs(id, from, follow).await,
            _ => app.relay.request(cluster.id, id, from, follow).await,
        };
        let lines = lines.map_err(Problem::unavailable)?;
        return Ok(if follow { with_retained_lines(app.clone(), id, lines) } else { lines });
    }
    let mut read = app.db.read().await?;
    let retained = store::deployment::replica::tail(&mut read, replica.id).await?;
    let skip = match from {
        LogsFrom::Last(count) => retained.len().saturating_sub(*count),
        LogsFrom::After(cursor) => {
            retained.iter().position(|line| line.next == *cursor).map_or(0, |at| at + 1)
        }
        LogsFrom::Start => 0,
    };
    Ok(stream::iter(retained.into_iter().skip(skip)).boxed())
}

/// Appends lines that a follower missed: cleanup may remove a replica's log before its last lines
/// were read, but the agent has reported them as well.
fn with_retained_lines(app: App, id: ReplicaId, lines: Lines) -> Lines {
    let last = Arc::new(Mutex::new(None));
    let recorded = last.clone();
    let lines = lines.inspect(move |line: &LogLine| {
        *recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.clone());
    });
    let missed_lines = stream::once(async move {
        let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        missed_lines(&app, id, last).await.unwrap_or_default()
    });
    lines.chain(missed_lines.flat_map(stream::iter)).boxed()
}

/// Returns the lines after `last` of a replica once it has ended.
async fn missed_lines(
    app: &App,
    id: ReplicaId,
    last: Option<LogLine>,
) -> store::Result<Vec<LogLine>> {
    for _ in 0..END_CHECKS {
        let mut read = app.db.read().await?;
        let replicas = store::deployment::replica::list(&mut read, id.deployment).await?;
        let Some(now) = replicas.into_iter().find(|replica| replica.id == id) else { break };
        if matches!(now.status, Status::Completed | Status::Failed) {
            let retained = store::deployment::replica::tail(&mut read, id).await?;
            let Some(last) = last else { return Ok(retained) };
            let known =
                retained.iter().position(|line| line.next == last.next && line.at == last.at);
            let is_new = |line: &LogLine| line.at > last.at;
            let from = known.map(|at| at + 1).or_else(|| retained.iter().position(is_new));
            return Ok(retained.into_iter().skip(from.unwrap_or(usize::MAX)).collect());
        }
        drop(read);
        tokio::time::sleep(END_CHECK_INTERVAL).await;
    }
    Ok(Vec::new())
}

fn as_text(line: &Line, with_number: bool) -> String {
    if with_number {
        return format!("[{}] {}\n", line.replica, line.text);
    }
    format!("{}\n", line.text)
}

fn as_json(line: &Line) -> String {
    let text = serde_json::to_string(line).expect("a line is plain data");
    text + "\n"
}

pub(crate) fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accept.contains(NDJSON) || accept.contains("application/json")
}

fn respond(lines: stream::BoxStream<'static, Line>, json: bool, with_number: bool) -> Response {
    let kind = if json { NDJSON } else { "text/plain; charset=utf-8" };
    let chunks = lines.map(move |line| {
        let text = if json { as_json(&line) } else { as_text(&line, with_number) };
        Ok::<_, Infallible>(Bytes::from(text))
    });
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(chunks)).into_response()
}
