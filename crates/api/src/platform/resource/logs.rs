//! Logs of operations on resources and clusters.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use base::Stop;
use futures_util::{StreamExt as _, stream};
use model::operation::Subject;
use model::resource::{Resource, Status};
use model::{ClusterId, environment};
use serde::Deserialize;
use store::operation::log;
use store::{Db, Read, Scope};
use tokio::sync::watch;
use utoipa::IntoParams;
use wire::resource::Line;

use crate::caller::{Call, From as Address};
use crate::edge::stream::OpenStream;
use crate::page::{Query, flag, id, number};
use crate::platform::log::{NDJSON, wants_json};
use crate::{App, Problem};

/// Number of lines read at once.
const BATCH: i64 = 500;
/// Polling interval without a signal.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Log query.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResourceLogFilter {
    /// Whether to stream new lines until the running operation ends.
    #[param(value_type = Option<bool>)]
    follow: Option<String>,
    /// Number of last lines, from 0 to 100000.
    #[param(value_type = Option<i64>)]
    tail: Option<String>,
    /// Line number after which to start.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
}

impl ResourceLogFilter {
    /// Returns `tail` and `after`, validated.
    fn range(&self) -> Result<(Option<i64>, i64), Problem> {
        let tail = self.tail.as_deref().map(|text| number("tail", Some(text), 0, 0, 100_000));
        let after = number("after", self.after.as_deref(), 0, 0, i64::MAX)?;
        if self.tail.is_some() && self.after.is_some() {
            return Err(Problem::field("after", "must not be combined with tail"));
        }
        Ok((tail.transpose()?, after))
    }
}

fn encode(line: Line, as_json: bool) -> Bytes {
    if as_json {
        let text = serde_json::to_string(&line).expect("a line is plain data");
        return Bytes::from(text + "\n");
    }
    Bytes::from(line.text + "\n")
}

/// Returns the log of a resource's operations.
///
/// Plain text, or JSON lines with `Accept: application/x-ndjson`. The last lines are retained, also
/// after the resource is destroyed.
#[utoipa::path(get, path = "/api/v1/environments/{id}/resources/{name}/logs", tag = "resources",
    params(("id" = String, Path, description = "Environment ID"),
        ("name" = String, Path, description = "Resource name"), ResourceLogFilter),
    responses((status = 200, description = "Log",
        content((String = "text/plain"), (Line = "application/x-ndjson"))), Problem))]
pub(crate) async fn resource_logs(
    Call(app, caller): Call,
    Address(from): Address,
    Path((text, name)): Path<(String, String)>,
    headers: HeaderMap,
    Query(filter): Query<ResourceLogFilter>,
) -> Result<Response, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let of = store::environment::get(&mut read, caller.scope(), id).await?;
    let one = super::named(&mut read, &of, &name).await?;
    drop(read);
    let open = OpenStream::new(&app, &caller, from).await?;
    respond(&app, open, &headers, LogSource::Resource(Box::new(one)), &filter).await
}

/// Returns the log of the provider's operations on a cluster.
///
/// Plain text, or JSON lines with `Accept: application/x-ndjson`.
#[utoipa::path(get, path = "/api/v1/clusters/{id}/logs", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID"), ResourceLogFilter),
    responses((status = 200, description = "Log",
        content((String = "text/plain"), (Line = "application/x-ndjson"))), Problem))]
pub(crate) async fn cluster_logs(
    Call(app, caller): Call,
    Address(from): Address,
    Path(text): Path<String>,
    headers: HeaderMap,
    Query(filter): Query<ResourceLogFilter>,
) -> Result<Response, Problem> {
    let id = id("cluster", &text)?;
    let found = store::cluster::get_own(&mut app.db.read().await?, caller.scope(), id).await?;
    let open = OpenStream::new(&app, &caller, from).await?;
    respond(&app, open, &headers, LogSource::Cluster(found.id), &filter).await
}

async fn respond(
    app: &App,
    open: OpenStream,
    headers: &HeaderMap,
    of: LogSource,
    filter: &ResourceLogFilter,
) -> Result<Response, Problem> {
    let (tail, after) = filter.range()?;
    let follow = flag("follow", filter.follow.as_deref())?;
    let signal = app.db.event_signal();
    let after = match tail {
        Some(count) => log::before_last(&mut app.db.read().await?, of.subject(), count).await?,
        None => after,
    };
    let (db, stop) = (app.db.clone(), app.stop.clone());
    let reader = Reader { db, of, after, follow, is_over: false, signal, stop };
    let as_json = wants_json(headers);
    let lines = open.guard(stream::unfold(reader, next_batch).flat_map(stream::iter));
    let chunks = lines.map(move |line| Ok::<_, Infallible>(encode(line, as_json)));
    let kind = if as_json { NDJSON } else { "text/plain; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(chunks)).into_response())
}

/// Source of a log.
enum LogSource {
    Resource(Box<Resource>),
    Cluster(ClusterId),
}

impl LogSource {
    fn subject(&self) -> Subject {
        match self {
            LogSource::Resource(one) => one.id.into(),
            LogSource::Cluster(id) => (*id).into(),
        }
    }

    /// Whether an operation is running or pending.
    async fn is_active(&self, read: &mut Read) -> store::Result<bool> {
        match self {
            LogSource::Resource(one) => is_active(read, one).await,
            LogSource::Cluster(id) => match store::cluster::get(read, Scope::All, *id).await {
                Err(store::Error::NotFound { .. }) => Ok(false),
                found => {
                    let status = found?.status;
                    Ok(status.is_provisioning() || status.is_deleting())
                }
            },
        }
    }
}

/// State of a log stream.
struct Reader {
    db: Db,
    of: LogSource,
    after: i64,
    follow: bool,
    /// Whether all lines were read.
    is_over: bool,
    signal: watch::Receiver<u64>,
    stop: Stop,
}

/// Waits for the next lines. Ends with the operation, or when the server stops.
async fn next_batch(mut reader: Reader) -> Option<(Vec<Line>, Reader)> {
    while !reader.is_over && !reader.stop.is_set() {
        reader.signal.mark_unchanged();
        match reader.read().await {
            Ok(lines) if !lines.is_empty() => return Some((lines, reader)),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "reading a log failed; the client will retry");
                return None;
            }
        }
        if reader.is_over {
            return None;
        }
        tokio::select! {
            changed = reader.signal.changed() => changed.ok()?,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = reader.stop.signalled() => {}
        }
    }
    None
}

impl Reader {
    async fn read(&mut self) -> store::Result<Vec<Line>> {
        let mut read = self.db.read().await?;
        // Checked before the lines are read: the last lines are written before the operation ends.
        let is_active = self.follow && self.of.is_active(&mut read).await?;
        let found = log::list(&mut read, self.of.subject(), self.after, BATCH).await?;
        let is_last = i64::try_from(found.len()).is_ok_and(|count| count < BATCH);
        self.is_over = is_last && !is_active;
        self.after = found.last().map_or(self.after, |line| line.number);
        let to_response =
            |line: log::Line| Line { number: line.number, at: line.at, text: line.line };
        Ok(found.into_iter().map(to_response).collect())
    }
}

/// Whether an operation on the resource is running or pending.
async fn is_active(read: &mut Read, one: &Resource) -> store::Result<bool> {
    let (of, name) = (one.environment_id, &one.node.name);
    let now = store::resource::by_name(read, Scope::All, of, name).await?;
    if now.id != one.id || !(now.status.is_running() || now.status == Status::Pending) {
        return Ok(false);
    }
    // Pending resources of a failed environment do not start.
    let of = store::environment::get(read, Scope::All, of).await?;
    let is_busy =
        matches!(of.status, environment::Status::Deploying | environment::Status::Destroying);
    Ok(now.status.is_running() || is_busy)
}
