//! Watches: what changes, as it changes, until the connection ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use futures_util::stream;
use serde_json::{Value, json};

use super::answer::Failure;
use super::objects::Change;
use super::route::Place;
use super::verbs::selected;
use super::{Asked, Shared};

/// How long a watch is silent before a bookmark comes.
const BOOKMARK_AFTER: Duration = Duration::from_millis(500);

struct Watch {
    shared: Arc<Shared>,
    asked: Asked,
    place: Place,
    /// What was told up to here.
    seen: u64,
    lines: VecDeque<String>,
    is_over: bool,
}

/// Begins a watch.
pub(super) fn begin(shared: &Arc<Shared>, asked: &Asked, place: &Place) -> Response<Body> {
    let from: Option<u64> = asked.param("resourceVersion").and_then(|text| text.parse().ok());
    let state = shared.state();
    let seen = from.filter(|&from| from > 0).unwrap_or(state.objects.version());
    if seen < state.objects.forgotten() {
        if state.is_refusing_old {
            return Failure::new(410, "too old resource version").into();
        }
        return error(410);
    }
    drop(state);
    let (shared, asked, place) = (shared.clone(), asked.clone(), place.clone());
    let watch = Watch { shared, asked, place, seen, lines: VecDeque::new(), is_over: false };
    let next = async |mut watch: Watch| watch.next().await.map(|line| (line, watch));
    streamed(stream::unfold(watch, next))
}

/// A watch that ends with an error at once.
pub(super) fn error(code: u16) -> Response<Body> {
    let object = Failure::new(code, format!("too old resource version: 1 ({code})")).body();
    streamed(stream::iter([json!({"type": "ERROR", "object": object}).to_string() + "\n"]))
}

pub(super) fn streamed(
    lines: impl futures_util::Stream<Item = String> + Send + 'static,
) -> Response<Body> {
    use futures_util::StreamExt as _;
    let bytes = lines.map(|line| Ok::<_, std::io::Error>(line.into_bytes()));
    let mut response = Response::new(Body::from_stream(bytes));
    let json = axum::http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, json);
    response
}

impl Watch {
    async fn next(&mut self) -> Option<String> {
        let mut signal = self.shared.changed.subscribe();
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.is_over {
                return None;
            }
            signal.borrow_and_update();
            self.look();
            if self.lines.is_empty() && !self.is_over {
                let changed = tokio::time::timeout(BOOKMARK_AFTER, signal.changed()).await;
                if changed.is_err() && self.asked.param("allowWatchBookmarks") == Some("true") {
                    return Some(self.bookmark());
                }
            }
        }
    }

    fn look(&mut self) {
        let state = self.shared.state();
        if self.seen < state.objects.forgotten() {
            let object = Failure::new(410, "too old resource version").body();
            self.lines.push_back(json!({"type": "ERROR", "object": object}).to_string() + "\n");
            self.is_over = true;
            return;
        }
        let changes = state.objects.since(self.seen);
        self.seen = state.objects.version();
        drop(state);
        let told = changes.iter().filter_map(|change| self.line(change)).collect::<Vec<_>>();
        self.lines.extend(told);
    }

    fn line(&self, change: &Change) -> Option<String> {
        let key = &change.key;
        let is_here = key.group == self.place.kind.group
            && key.plural == self.place.kind.plural
            && self.place.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace);
        if !is_here || !selected(&change.object, &self.asked) {
            return None;
        }
        Some(json!({"type": change.what, "object": change.object}).to_string() + "\n")
    }

    fn bookmark(&self) -> String {
        let kind = &self.place.kind;
        let version = self.seen.to_string();
        let object: Value = json!({"kind": kind.kind, "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": version, "creationTimestamp": null}});
        json!({"type": "BOOKMARK", "object": object}).to_string() + "\n"
    }
}
