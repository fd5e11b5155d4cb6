//! Reading what pods said, through the apiserver.

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

use super::connection::Connection;
use super::names;
use super::seen::World;
use crate::runtime::logs::timed::Progress;

/// How long a follower waits before it looks again for a log that broke off.
const LOOK: Duration = Duration::from_secs(1);

type Open = Lines<Pin<Box<dyn AsyncBufRead + Send>>>;

struct Reader {
    connection: Arc<Connection>,
    world: Arc<World>,
    label: String,
    progress: Progress,
    follow: bool,
    /// How many lines from the end are asked for, the first time.
    tail: Option<i64>,
    open: Option<Open>,
    /// Shall it run, as far as this process knows?
    goes_on: Box<dyn Fn() -> bool + Send>,
}

/// What a replica's newest pod said.
pub(super) fn read(
    connection: Arc<Connection>,
    world: Arc<World>,
    id: ReplicaId,
    from: &LogsFrom,
    follow: bool,
    goes_on: Box<dyn Fn() -> bool + Send>,
) -> LogStream {
    let progress = match from {
        LogsFrom::After(cursor) => Progress::after(cursor),
        _ => Progress::default(),
    };
    let label = names::label(id);
    let mut reader =
        Reader { connection, world, label, progress, follow, tail: None, open: None, goes_on };
    let LogsFrom::Last(count) = *from else { return reader.lines() };
    let begin = async move {
        reader.follow = false;
        // Who follows needs the exact place: lines of one time are told apart by their number, which a
        // log that is cut there does not tell.
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
            if self.open.is_none() && !self.begin().await {
                if !self.waits_for_more().await {
                    return None;
                }
                continue;
            }
            match self.open.as_mut()?.next().await {
                Some(Ok(text)) => {
                    // What came from where, Kubernetes does not say.
                    if let Some(line) = self.progress.line(&text, Source::Stdout) {
                        return Some(line);
                    }
                }
                Some(Err(_)) | None => {
                    self.open = None;
                    self.progress.broke_off();
                    if !self.waits_for_more().await {
                        return None;
                    }
                }
            }
        }
    }

    /// Opens the log of the newest pod, if there is one.
    async fn begin(&mut self) -> bool {
        let pod = self.world.with(|known| {
            let pods = known.pods_of(&self.label);
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
                tracing::debug!(%error, "a log can't be read");
                false
            }
        }
    }

    /// Is more to be expected? Then a moment has passed.
    async fn waits_for_more(&mut self) -> bool {
        if !self.follow || !(self.goes_on)() {
            return false;
        }
        let is_over = self.world.with(|known| {
            let pods = known.pods_of(&self.label);
            pods.first().is_some_and(|pod| matches!(pod.phase(), "Succeeded" | "Failed"))
        });
        if is_over {
            return false;
        }
        let mut signal = self.world.signal(&self.label);
        let _ = tokio::time::timeout(LOOK, signal.changed()).await;
        true
    }
}
