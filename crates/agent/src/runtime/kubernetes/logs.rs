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
use model::Time;
use model::agent::ReplicaId;

use super::connection::Connection;
use super::names;
use super::seen::World;
use crate::runtime::docker::logs::{At, split};
use crate::runtime::logs::{Cursor, LogLine, LogStream, LogsFrom, Source};

/// How long a follower waits before it looks again for a log that broke off.
const LOOK: Duration = Duration::from_secs(1);

type Open = Lines<Pin<Box<dyn AsyncBufRead + Send>>>;

struct Reader {
    connection: Arc<Connection>,
    world: Arc<World>,
    label: String,
    at: At,
    /// Lines up to here are known already; none once that place was passed.
    known: Option<At>,
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
    let at = match from {
        LogsFrom::After(cursor) => At::of(cursor),
        _ => At::default(),
    };
    let label = names::label(id);
    let mut reader = Reader {
        connection,
        world,
        label,
        at,
        known: None,
        follow,
        tail: None,
        open: None,
        goes_on,
    };
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
                    if let Some(line) = self.line(&text) {
                        return Some(line);
                    }
                }
                Some(Err(_)) | None => {
                    self.open = None;
                    self.at = self.known.take().unwrap_or(self.at);
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
        let seconds = self.at.nanos / 1_000_000_000;
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
                self.known = Some(self.at).filter(|at| at.lines > 0);
                self.at = At::default();
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

    /// A line, unless it is known already. What came from where, Kubernetes does not say.
    fn line(&mut self, text: &str) -> Option<LogLine> {
        let (nanos, text) = split(text)?;
        self.at = self.at.after(nanos);
        if let Some(known) = self.known {
            if self.at.nanos <= known.nanos {
                self.known = Some(known).filter(|known| *known != self.at);
                return None;
            }
            self.known = None;
        }
        let next = Cursor::of(self.at.nanos, self.at.lines);
        Some(LogLine {
            at: Time(nanos / 1000),
            source: Source::Stdout,
            text: text.to_owned(),
            next,
        })
    }
}
