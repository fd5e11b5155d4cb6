//! Reads pod logs through the API server.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::io::{AsyncBufRead, AsyncBufReadExt as _, Lines};
use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::LogParams;
use model::agent::ReplicaId;
use model::log::{LogLine, LogsFrom, Source};
use runtime::LogStream;

use super::cache::Cache;
use super::connection::Connection;
use super::names;
use crate::runtime::logs::timed::Progress;

/// How long a follower waits before it reopens a log.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

type OpenLog = Lines<Pin<Box<dyn AsyncBufRead + Send>>>;

struct Reader {
    connection: Arc<Connection>,
    cache: Arc<Cache>,
    label: String,
    progress: Progress,
    follow: bool,
    /// Number of lines from the end, for the first request.
    tail: Option<i64>,
    open: Option<OpenLog>,
    /// Whether the replica should run, as far as this process knows.
    is_active: Box<dyn Fn() -> bool + Send>,
}

/// Streams the log of a replica's newest pod.
pub(super) fn read(
    connection: Arc<Connection>,
    cache: Arc<Cache>,
    id: ReplicaId,
    from: &LogsFrom,
    follow: bool,
    is_active: Box<dyn Fn() -> bool + Send>,
) -> LogStream {
    let progress = match from {
        LogsFrom::After(cursor) => Progress::after(cursor),
        _ => Progress::default(),
    };
    let label = names::label(id);
    let mut reader =
        Reader { connection, cache, label, progress, follow, tail: None, open: None, is_active };
    let LogsFrom::Last(count) = *from else { return reader.lines() };
    let begin = async move {
        reader.follow = false;
        // A follower needs the exact position: lines with the same time differ by their number,
        // which a tail does not reveal.
        reader.tail = i64::try_from(count).ok().filter(|_| !follow);
        let mut last = VecDeque::new();
        while let Some(line) = reader.next().await {
            last.push_back(line);
            if last.len() > count {
                last.pop_front();
            }
        }
        reader.follow = follow;
        let more = if follow { reader.lines() } else { stream::empty().boxed() };
        stream::iter(last).chain(more)
    };
    stream::once(begin).flatten().boxed()
}

impl Reader {
    fn lines(self) -> LogStream {
        stream::unfold(self, async |mut reader| reader.next().await.map(|line| (line, reader)))
            .boxed()
    }

    async fn next(&mut self) -> Option<LogLine> {
        loop {
            if self.open.is_none() && !self.open_log().await {
                if !self.await_more().await {
                    return None;
                }
                continue;
            }
            match self.open.as_mut()?.next().await {
                Some(Ok(text)) => {
                    // Kubernetes does not report the source.
                    if let Some(line) = self.progress.line(&text, Source::Stdout) {
                        return Some(line);
                    }
                }
                Some(Err(_)) | None => {
                    self.open = None;
                    self.progress.interrupted();
                    if !self.await_more().await {
                        return None;
                    }
                }
            }
        }
    }

    /// Opens the log of the newest pod, if any.
    async fn open_log(&mut self) -> bool {
        let pod = self.cache.read(|state| {
            let pods = state.pods_of(&self.label);
            pods.first().map(|pod| (pod.namespace.clone(), pod.name.clone()))
        });
        let Some((namespace, name)) = pod else { return false };
        let seconds = self.progress.since_secs();
        let params = LogParams {
            follow: self.follow,
            timestamps: true,
            tail_lines: self.tail.take(),
            since_time: Timestamp::from_second(seconds).ok().filter(|_| seconds > 0),
            ..LogParams::default()
        };
        let api: Api<Pod> = Api::namespaced(self.connection.client(), &namespace);
        match api.log_stream(&name, &params).await {
            Ok(stream) => {
                self.progress.opened();
                let stream: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(stream);
                self.open = Some(stream.lines());
                true
            }
            Err(error) => {
                tracing::debug!(%error, "reading a log failed");
                false
            }
        }
    }

    /// Waits a moment if more lines can follow; returns whether they can.
    async fn await_more(&mut self) -> bool {
        if !self.follow || !(self.is_active)() {
            return false;
        }
        let has_ended = self.cache.read(|state| {
            let pods = state.pods_of(&self.label);
            pods.first().is_some_and(|pod| matches!(pod.phase(), "Succeeded" | "Failed"))
        });
        if has_ended {
            return false;
        }
        let mut signal = self.cache.signal(&self.label);
        let _ = tokio::time::timeout(REOPEN_INTERVAL, signal.changed()).await;
        true
    }
}
