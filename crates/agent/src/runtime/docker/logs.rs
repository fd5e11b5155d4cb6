//! Reads container logs through the engine.

use std::collections::VecDeque;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::ContainerStateStatusEnum as Status;
use bollard::query_parameters::{InspectContainerOptions, LogsOptions};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use model::deployment::Restart;
use model::log::{LogLine, LogsFrom, Source};
use runtime::LogStream;

use super::Engine;
use super::body::{RESTART, is_restarted};
use crate::runtime::logs::timed::Progress;

/// How often a follower checks whether an exited container was restarted.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Streams a container's log.
pub(super) fn read(
    api: bollard::Docker,
    engine: Engine,
    name: String,
    from: &LogsFrom,
    follow: bool,
) -> LogStream {
    let progress = match from {
        LogsFrom::After(cursor) => Progress::after(cursor),
        _ => Progress::default(),
    };
    let reader = Reader { api, engine, name, progress, follow, open: None };
    let LogsFrom::Last(count) = *from else { return reader.lines() };
    let begin = async move {
        let (last, mut reader) = reader.last(count).await;
        // An empty log continues from its beginning.
        reader.follow = follow;
        let more = if follow { reader.lines() } else { stream::empty().boxed() };
        stream::iter(last).chain(more)
    };
    stream::once(begin).flatten().boxed()
}

struct Reader {
    api: bollard::Docker,
    engine: Engine,
    name: String,
    progress: Progress,
    follow: bool,
    open: Option<BoxStream<'static, Result<LogOutput, Error>>>,
}

impl Reader {
    fn lines(self) -> LogStream {
        stream::unfold(self, async |mut reader| reader.next().await.map(|line| (line, reader)))
            .boxed()
    }

    /// Reads the last lines. Returns them and a reader for those that follow.
    async fn last(mut self, count: usize) -> (VecDeque<LogLine>, Self) {
        self.follow = false;
        // Podman filters by whole seconds, so a tail would break the line count within a second.
        let tail = if self.engine == Engine::Docker { count.to_string() } else { "all".to_owned() };
        self.open(&tail);
        let mut last = VecDeque::new();
        while let Some(line) = self.next().await {
            last.push_back(line);
            if last.len() > count {
                last.pop_front();
            }
        }
        (last, self)
    }

    fn open(&mut self, tail: &str) {
        let seconds = self.progress.since_secs();
        let options = LogsOptions {
            follow: self.follow,
            stdout: true,
            stderr: true,
            timestamps: true,
            since: i32::try_from(seconds).unwrap_or(0),
            tail: tail.to_owned(),
            ..LogsOptions::default()
        };
        self.progress.opened();
        self.open = Some(self.api.logs(&self.name, Some(options)).boxed());
    }

    async fn next(&mut self) -> Option<LogLine> {
        loop {
            if self.open.is_none() {
                self.open("all");
            }
            match self.open.as_mut()?.next().await {
                Some(Ok(output)) => {
                    if let Some(line) = self.line(output) {
                        return Some(line);
                    }
                }
                Some(Err(_)) | None => {
                    self.open = None;
                    self.progress.interrupted();
                    if !self.follow || !is_active(&self.api, &self.name).await {
                        return None;
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    /// Parses a line; none if it was read before.
    fn line(&mut self, output: LogOutput) -> Option<LogLine> {
        let source = match output {
            LogOutput::StdErr { .. } => Source::Stderr,
            _ => Source::Stdout,
        };
        let bytes = output.into_bytes();
        let text = String::from_utf8_lossy(&bytes);
        self.progress.line(&text, source)
    }
}

/// Whether a container runs or will be restarted.
async fn is_active(api: &bollard::Docker, name: &str) -> bool {
    let found = match api.inspect_container(name, None::<InspectContainerOptions>).await {
        Ok(found) => found,
        // Podman has transient states that the library does not know: check is_restarted.
        Err(error) => return matches!(error, Error::JsonDataError { .. }),
    };
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    let restart = labels.get(RESTART).and_then(|text| text.parse().ok()).unwrap_or(Restart::Never);
    let Some(state) = found.state else { return false };
    match state.status {
        Some(Status::EXITED | Status::DEAD) => is_restarted(restart, state.exit_code.unwrap_or(0)),
        Some(Status::REMOVING) | None => false,
        Some(_) => true,
    }
}
