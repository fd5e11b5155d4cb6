//! Watches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use futures_util::stream;
use serde_json::{Value, json};

use super::answer::Failure;
use super::objects::Change;
use super::route::Target;
use super::verbs::selected;
use super::{RecordedRequest, Shared};

/// Interval of bookmarks without changes.
const BOOKMARK_AFTER: Duration = Duration::from_millis(500);

struct Watch {
    shared: Arc<Shared>,
    asked: RecordedRequest,
    target: Target,
    /// Version up to which changes were sent.
    sent: u64,
    lines: VecDeque<String>,
    has_ended: bool,
}

/// Starts a watch.
pub(super) fn begin(
    shared: &Arc<Shared>,
    asked: &RecordedRequest,
    target: &Target,
) -> Response<Body> {
    let from: Option<u64> = asked.param("resourceVersion").and_then(|text| text.parse().ok());
    let state = shared.state();
    let sent = from.filter(|&from| from > 0).unwrap_or(state.objects.version());
    if sent < state.objects.compacted() {
        if state.rejects_expired {
            return Failure::new(410, "too old resource version").into();
        }
        return error(410);
    }
    drop(state);
    let (shared, asked, target) = (shared.clone(), asked.clone(), target.clone());
    let watch = Watch { shared, asked, target, sent, lines: VecDeque::new(), has_ended: false };
    let next = async |mut watch: Watch| watch.next().await.map(|line| (line, watch));
    streamed(stream::unfold(watch, next))
}

/// A watch that ends with an error event at once.
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
            if self.has_ended {
                return None;
            }
            signal.borrow_and_update();
            self.collect_changes();
            if self.lines.is_empty() && !self.has_ended {
                let changed = tokio::time::timeout(BOOKMARK_AFTER, signal.changed()).await;
                if changed.is_err() && self.asked.param("allowWatchBookmarks") == Some("true") {
                    return Some(self.bookmark());
                }
            }
        }
    }

    fn collect_changes(&mut self) {
        let state = self.shared.state();
        if self.sent < state.objects.compacted() {
            let object = Failure::new(410, "too old resource version").body();
            self.lines.push_back(json!({"type": "ERROR", "object": object}).to_string() + "\n");
            self.has_ended = true;
            return;
        }
        let changes = state.objects.since(self.sent);
        self.sent = state.objects.version();
        drop(state);
        let lines = changes.iter().filter_map(|change| self.line(change)).collect::<Vec<_>>();
        self.lines.extend(lines);
    }

    fn line(&self, change: &Change) -> Option<String> {
        let key = &change.key;
        let is_watched = key.group == self.target.kind.group
            && key.plural == self.target.kind.plural
            && self.target.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace);
        if !is_watched || !selected(&change.object, &self.asked) {
            return None;
        }
        Some(json!({"type": change.what, "object": change.object}).to_string() + "\n")
    }

    fn bookmark(&self) -> String {
        let kind = &self.target.kind;
        let version = self.sent.to_string();
        let object: Value = json!({"kind": kind.kind, "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": version, "creationTimestamp": null}});
        json!({"type": "BOOKMARK", "object": object}).to_string() + "\n"
    }
}
