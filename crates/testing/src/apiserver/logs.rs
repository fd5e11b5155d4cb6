//! Pod logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use futures_util::stream;

use super::answer::{Answer, Failure};
use super::route::Target;
use super::{RecordedRequest, Shared};

/// Log lines, beginning with their times, by namespace and pod.
pub(super) type Logs = BTreeMap<(String, String), Vec<String>>;

struct Reader {
    shared: Arc<Shared>,
    pod: (String, String),
    next: usize,
    follow: bool,
}

/// Responds with a pod's log; with `follow`, until the pod ends.
pub(super) fn read(shared: &Arc<Shared>, asked: &RecordedRequest, target: &Target) -> Answer {
    let pod =
        (target.namespace.clone().unwrap_or_default(), target.name.clone().unwrap_or_default());
    let state = shared.state();
    if state
        .objects
        .get(&super::verbs::key(&Target { subresource: None, ..target.clone() }))
        .is_none()
    {
        return Err(Failure::new(404, format!("pods \"{}\" not found", pod.1)));
    }
    let lines = state.logs.get(&pod).cloned().unwrap_or_default();
    drop(state);
    let since = asked.param("sinceTime").unwrap_or_default();
    let skip = lines.iter().take_while(|line| line.as_str() < since.trim_end_matches('Z')).count();
    let tail: Option<usize> = asked.param("tailLines").and_then(|text| text.parse().ok());
    let next = tail.map_or(skip, |tail| skip.max(lines.len().saturating_sub(tail)));
    let follow = asked.param("follow") == Some("true");
    let reader = Reader { shared: shared.clone(), pod, next, follow };
    let stamped = asked.param("timestamps") == Some("true");
    let lines = stream::unfold(reader, async |mut reader| reader.next().await.map(|l| (l, reader)));
    let bytes = futures_util::StreamExt::map(lines, move |line| {
        let text = if stamped {
            line
        } else {
            line.split_once(' ').map_or(String::new(), |(_, t)| t.into())
        };
        Ok::<_, std::io::Error>((text + "\n").into_bytes())
    });
    Ok(Response::new(Body::from_stream(bytes)))
}

impl Reader {
    async fn next(&mut self) -> Option<String> {
        let mut signal = self.shared.changed.subscribe();
        loop {
            signal.borrow_and_update();
            let (line, is_running) = {
                let state = self.shared.state();
                let line =
                    state.logs.get(&self.pod).and_then(|lines| lines.get(self.next)).cloned();
                let pods = state.objects.list("", "pods", Some(&self.pod.0));
                let is_running = pods.iter().any(|pod| {
                    pod["metadata"]["name"] == *self.pod.1 && pod["status"]["phase"] == "Running"
                });
                (line, is_running)
            };
            if line.is_some() {
                self.next += 1;
                return line;
            }
            if !self.follow || !is_running {
                return None;
            }
            signal.changed().await.ok()?;
        }
    }
}
