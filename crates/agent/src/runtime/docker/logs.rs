//! Reading what containers said, through the engine.

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
use super::body::{RESTART, again};
use crate::runtime::logs::timed::Progress;

/// How often a follower looks whether a container that ended was started again.
const LOOK: Duration = Duration::from_millis(250);

/// What a container said.
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
        // Nothing said yet is everything still to come.
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

    /// The last lines, and a reader of what comes after them.
    async fn last(mut self, count: usize) -> (VecDeque<LogLine>, Self) {
        self.follow = false;
        // Those of one second can't be counted from the middle where times are whole seconds.
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
                    self.progress.broke_off();
                    if !self.follow || !goes_on(&self.api, &self.name).await {
                        return None;
                    }
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }

    /// A line, unless it is known already.
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

/// Does a container run, or will it again?
async fn goes_on(api: &bollard::Docker, name: &str) -> bool {
    let found = match api.inspect_container(name, None::<InspectContainerOptions>).await {
        Ok(found) => found,
        // Podman has states in passing that the library does not know: look again.
        Err(error) => return matches!(error, Error::JsonDataError { .. }),
    };
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    let restart = labels.get(RESTART).and_then(|text| text.parse().ok()).unwrap_or(Restart::Never);
    let Some(state) = found.state else { return false };
    match state.status {
        Some(Status::EXITED | Status::DEAD) => again(restart, state.exit_code.unwrap_or(0)),
        Some(Status::REMOVING) | None => false,
        Some(_) => true,
    }
}
