//! The logs of operations, on resources and on clusters.

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

use crate::caller::Call;
use crate::page::{Query, flag, id, number};
use crate::platform::log::{NDJSON, wants_json};
use crate::{App, Problem};

/// How many lines are read at once.
const BATCH: i64 = 500;
/// How often to look again, whether or not something seems to be new.
const LOOK: Duration = Duration::from_secs(5);

/// Which part of the log is wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResourceLogFilter {
    /// Goes on as more is said, until the resource's step is over.
    #[param(value_type = Option<bool>)]
    follow: Option<String>,
    /// Only the last lines, this many, from 0 to 100000.
    #[param(value_type = Option<i64>)]
    tail: Option<String>,
    /// Only after the line of this number.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
}

impl ResourceLogFilter {
    /// What is wanted: the last lines, or those after a number.
    fn checked(&self) -> Result<(Option<i64>, i64), Problem> {
        let tail = self.tail.as_deref().map(|text| number("tail", Some(text), 0, 0, 100_000));
        let after = number("after", self.after.as_deref(), 0, 0, i64::MAX)?;
        if self.tail.is_some() && self.after.is_some() {
            return Err(Problem::field("after", "give either after or tail, not both"));
        }
        Ok((tail.transpose()?, after))
    }
}

fn written(line: Line, as_json: bool) -> Bytes {
    if as_json {
        let text = serde_json::to_string(&line).expect("a line is plain data");
        return Bytes::from(text + "\n");
    }
    Bytes::from(line.text + "\n")
}

/// What was said while a resource was made, changed and destroyed: as plain text, or as lines of JSON with
/// `Accept: application/x-ndjson`. The last lines are kept, also when the resource is gone.
#[utoipa::path(get, path = "/api/v1/environments/{id}/resources/{name}/logs", tag = "resources",
    params(("id" = String, Path, description = "The environment's id"),
        ("name" = String, Path, description = "The resource's name"), ResourceLogFilter),
    responses((status = 200, description = "The log",
        content((String = "text/plain"), (Line = "application/x-ndjson"))), Problem))]
pub(crate) async fn resource_logs(
    Call(app, caller): Call,
    Path((text, name)): Path<(String, String)>,
    headers: HeaderMap,
    Query(filter): Query<ResourceLogFilter>,
) -> Result<Response, Problem> {
    let id = id("environment", &text)?;
    let mut read = app.db.read().await?;
    let of = store::environment::get(&mut read, caller.scope(), id).await?;
    let one = super::named(&mut read, &of, &name).await?;
    drop(read);
    answer(&app, &headers, Of::Resource(Box::new(one)), &filter).await
}

/// The log of the provider's operations on a cluster: as plain text, or as lines of JSON with
/// `Accept: application/x-ndjson`.
#[utoipa::path(get, path = "/api/v1/clusters/{id}/logs", tag = "clusters",
    params(("id" = String, Path, description = "Its id"), ResourceLogFilter),
    responses((status = 200, description = "The log",
        content((String = "text/plain"), (Line = "application/x-ndjson"))), Problem))]
pub(crate) async fn cluster_logs(
    Call(app, caller): Call,
    Path(text): Path<String>,
    headers: HeaderMap,
    Query(filter): Query<ResourceLogFilter>,
) -> Result<Response, Problem> {
    let id = id("cluster", &text)?;
    let found = store::cluster::get_own(&mut app.db.read().await?, caller.scope(), id).await?;
    answer(&app, &headers, Of::Cluster(found.id), &filter).await
}

async fn answer(
    app: &App,
    headers: &HeaderMap,
    of: Of,
    filter: &ResourceLogFilter,
) -> Result<Response, Problem> {
    let (tail, after) = filter.checked()?;
    let follows = flag("follow", filter.follow.as_deref())?;
    let signal = app.db.event_signal();
    let after = match tail {
        Some(count) => log::before_last(&mut app.db.read().await?, of.subject(), count).await?,
        None => after,
    };
    let (db, stop) = (app.db.clone(), app.stop.clone());
    let reader = Reader { db, of, after, follows, is_over: false, signal, stop };
    let as_json = wants_json(headers);
    let lines = stream::unfold(reader, next_batch).flat_map(stream::iter);
    let chunks = lines.map(move |line| Ok::<_, Infallible>(written(line, as_json)));
    let kind = if as_json { NDJSON } else { "text/plain; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(chunks)).into_response())
}

/// Whose log is read.
enum Of {
    Resource(Box<Resource>),
    Cluster(ClusterId),
}

impl Of {
    fn subject(&self) -> Subject {
        match self {
            Of::Resource(one) => one.id.into(),
            Of::Cluster(id) => (*id).into(),
        }
    }

    /// Is an operation under way, or about to begin?
    async fn is_going(&self, read: &mut Read) -> store::Result<bool> {
        match self {
            Of::Resource(one) => is_going(read, one).await,
            Of::Cluster(id) => match store::cluster::get(read, Scope::All, *id).await {
                Err(store::Error::NotFound { .. }) => Ok(false),
                found => {
                    let status = found?.status;
                    Ok(status.is_provisioning() || status.is_leaving())
                }
            },
        }
    }
}

/// A reader's place in a log.
struct Reader {
    db: Db,
    of: Of,
    after: i64,
    follows: bool,
    /// Was all read that there will be?
    is_over: bool,
    signal: watch::Receiver<u64>,
    stop: Stop,
}

/// The next lines, as soon as there are some. Ends with the step, or when the server stops.
async fn next_batch(mut reader: Reader) -> Option<(Vec<Line>, Reader)> {
    while !reader.is_over && !reader.stop.is_set() {
        reader.signal.mark_unchanged();
        match reader.read().await {
            Ok(lines) if !lines.is_empty() => return Some((lines, reader)),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "a log can't be read on; its reader will ask again");
                return None;
            }
        }
        if reader.is_over {
            return None;
        }
        tokio::select! {
            changed = reader.signal.changed() => changed.ok()?,
            () = tokio::time::sleep(LOOK) => {}
            () = reader.stop.told() => {}
        }
    }
    None
}

impl Reader {
    async fn read(&mut self) -> store::Result<Vec<Line>> {
        let mut read = self.db.read().await?;
        // Before the lines are: what is said last is said before the step is over.
        let is_going = self.follows && self.of.is_going(&mut read).await?;
        let found = log::list(&mut read, self.of.subject(), self.after, BATCH).await?;
        let is_last = i64::try_from(found.len()).is_ok_and(|count| count < BATCH);
        self.is_over = is_last && !is_going;
        self.after = found.last().map_or(self.after, |line| line.number);
        let shown = |line: log::Line| Line { number: line.number, at: line.at, text: line.line };
        Ok(found.into_iter().map(shown).collect())
    }
}

/// Is something being done to the resource, or about to be?
async fn is_going(read: &mut Read, one: &Resource) -> store::Result<bool> {
    let (of, name) = (one.environment_id, &one.node.name);
    let now = store::resource::by_name(read, Scope::All, of, name).await?;
    if now.id != one.id || !(now.status.is_running() || now.status == Status::Pending) {
        return Ok(false);
    }
    // Nobody's turn comes in an environment that has failed.
    let of = store::environment::get(read, Scope::All, of).await?;
    let is_busy =
        matches!(of.status, environment::Status::Deploying | environment::Status::Destroying);
    Ok(now.status.is_running() || is_busy)
}
