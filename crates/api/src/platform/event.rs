//! The event log: as a list, and as a resumable stream.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json as Answer;
use axum::http::{HeaderMap, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use base::Stop;
use futures_util::stream::{self, Stream, StreamExt};
use model::event::Kind;
use serde::Deserialize;
use store::event::Filter;
use store::{Db, Scope};
use tokio::sync::watch;
use utoipa::IntoParams;
use wire::event::{Event, EventList};

use crate::caller::{Call, From as Address};
use crate::edge::stream::OpenStream;
use crate::page::{MAX_LIMIT, Query, number};
use crate::{App, Problem};

/// Number of events that a stream reads at once.
const BATCH: i64 = 500;
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Filter for events.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventFilter {
    /// Filters by kind of subject: `organization`, `user`, `invite`, `cluster`, `deployment`,
    /// `instance`, `pool`, `template`, `environment`, `resource`.
    kind: Option<String>,
    /// Filters by ID of the subject.
    subject: Option<String>,
    /// Filters by event type, `kind.change`.
    #[serde(rename = "type")]
    change: Option<String>,
    /// Start time (RFC 3339).
    since: Option<String>,
    /// Sequence number after which to start.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// Page size, from 1 to 1000.
    #[param(value_type = Option<i64>)]
    limit: Option<String>,
}

impl EventFilter {
    fn filter(&self) -> Result<Filter, Problem> {
        if let Some(kind) = &self.kind {
            kind.parse::<Kind>()?;
        }
        let since = self.since.as_deref().map(str::parse).transpose();
        let since =
            since.map_err(|e: model::time::InvalidTime| Problem::field("since", e.to_string()))?;
        let (kind, subject, change) =
            (self.kind.clone(), self.subject.clone(), self.change.clone());
        Ok(Filter { kind, subject, change, since })
    }
}

/// Lists events, oldest first.
///
/// With `Accept: text/event-stream`, streams events as they happen: from now on, or after `after`
/// or `Last-Event-ID`. A stream ends with the caller's session, and after a time that the server
/// sets (an hour by default); resume it with `Last-Event-ID`.
#[utoipa::path(get, path = "/api/v1/events", tag = "events", params(EventFilter),
    responses((status = 200, description = "A page of the log, or the stream",
        content((EventList = "application/json"), (String = "text/event-stream"))), Problem))]
pub(crate) async fn event_list(
    Call(app, caller): Call,
    Address(from): Address,
    headers: HeaderMap,
    Query(query): Query<EventFilter>,
) -> Result<Response, Problem> {
    let filter = query.filter()?;
    let after = query
        .after
        .as_deref()
        .map(|text| number("after", Some(text), 0, 0, i64::MAX))
        .transpose()?;
    if wants_stream(&headers) {
        let resumed = headers.get("last-event-id").and_then(|v| v.to_str().ok());
        let resumed =
            resumed.map(|text| number("Last-Event-ID", Some(text), 0, 0, i64::MAX)).transpose()?;
        let open = OpenStream::new(&app, &caller, from).await?;
        return stream(&app, open, caller.scope(), filter, resumed.or(after)).await;
    }
    let limit = number("limit", query.limit.as_deref(), 100, 1, MAX_LIMIT)?;
    app.db.number_events().await?;
    let mut read = app.db.read().await?;
    let found =
        store::event::list(&mut read, caller.scope(), &filter, after.unwrap_or(0), limit + 1)
            .await?;
    Ok(Answer(EventList::new(found, limit)).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accept.contains("text/event-stream")
}

/// State of an event stream.
struct Reader {
    db: Db,
    scope: Scope,
    filter: Filter,
    after: i64,
    signal: watch::Receiver<u64>,
    stop: Stop,
}

async fn stream(
    app: &App,
    open: OpenStream,
    scope: Scope,
    filter: Filter,
    after: Option<i64>,
) -> Result<Response, Problem> {
    let signal = app.db.event_signal();
    let after = match after {
        Some(seq) => seq,
        None => {
            app.db.number_events().await?;
            store::event::last(&mut app.db.read().await?).await?
        }
    };
    let reader =
        Reader { db: app.db.clone(), scope, filter, after, signal, stop: app.stop.clone() };
    let events = stream::unfold(reader, next_batch).flat_map(stream::iter);
    // The first event carries the position, so that a client can resume before anything happens.
    let position = stream::once(async move { Ok(sse::Event::default().id(after.to_string())) });
    let response = Sse::new(open.guard(position.chain(as_sse(events))));
    let response = response.keep_alive(KeepAlive::new().interval(HEARTBEAT));
    Ok(response.into_response())
}

/// Waits for the next events. Ends when the server stops.
async fn next_batch(mut reader: Reader) -> Option<(Vec<Event>, Reader)> {
    loop {
        if reader.stop.is_set() {
            return None;
        }
        reader.signal.mark_unchanged();
        match read(&reader).await {
            Ok((found, read_up_to)) => {
                reader.after = read_up_to;
                if !found.is_empty() {
                    return Some((found.into_iter().map(Event::from).collect(), reader));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "reading events for a stream failed; the client will resume");
                return None;
            }
        }
        tokio::select! {
            changed = reader.signal.changed() => changed.ok()?,
            () = reader.stop.signalled() => {}
        }
    }
}

async fn read(reader: &Reader) -> store::Result<(Vec<model::event::Event>, i64)> {
    let mut read = reader.db.read().await?;
    store::event::next(&mut read, reader.scope, &reader.filter, reader.after, BATCH).await
}

fn as_sse(events: impl Stream<Item = Event>) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    events.map(|event| {
        let data = serde_json::to_string(&event).expect("an event is plain data");
        Ok(sse::Event::default().id(event.seq.to_string()).event(event.change).data(data))
    })
}
