//! Reading what containers said, through the engine.

use std::collections::VecDeque;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::ContainerStateStatusEnum as Status;
use bollard::query_parameters::{InspectContainerOptions, LogsOptions};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use model::Time;
use model::deployment::Restart;

use super::Engine;
use super::body::{RESTART, again};
use crate::runtime::logs::{Cursor, LogLine, LogStream, LogsFrom, Source};

/// How often a follower looks whether a container that ended was started again.
const LOOK: Duration = Duration::from_millis(250);

/// A place in a log: engines only know times, and many lines may have the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::runtime) struct At {
    /// Nanoseconds since 1970.
    pub(in crate::runtime) nanos: i64,
    /// How many lines of that time are before it.
    pub(in crate::runtime) lines: u64,
}

impl At {
    /// The place after a line of this time that follows.
    pub(in crate::runtime) fn after(self, nanos: i64) -> Self {
        if nanos == self.nanos {
            At { nanos, lines: self.lines + 1 }
        } else {
            At { nanos, lines: 1 }
        }
    }

    pub(in crate::runtime) fn of(cursor: &Cursor) -> Self {
        cursor.numbers().map_or_else(At::default, |(nanos, lines)| At { nanos, lines })
    }
}

/// What a container said.
pub(super) fn read(
    api: bollard::Docker,
    engine: Engine,
    name: String,
    from: &LogsFrom,
    follow: bool,
) -> LogStream {
    let at = match from {
        LogsFrom::After(cursor) => At::of(cursor),
        _ => At::default(),
    };
    let reader = Reader { api, engine, name, at, known: None, follow, open: None };
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
    at: At,
    /// Lines up to here are known already; none once that place was passed.
    known: Option<At>,
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
        let seconds = self.at.nanos / 1_000_000_000;
        let options = LogsOptions {
            follow: self.follow,
            stdout: true,
            stderr: true,
            timestamps: true,
            since: i32::try_from(seconds).unwrap_or(0),
            tail: tail.to_owned(),
            ..LogsOptions::default()
        };
        self.known = Some(self.at).filter(|at| at.lines > 0);
        self.at = At::default();
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
                    self.at = self.known.take().unwrap_or(self.at);
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
        let (nanos, text) = split(&text)?;
        self.at = self.at.after(nanos);
        if let Some(known) = self.known {
            // Times may go back a little from one line to the next: the place counts, not the time.
            if self.at.nanos <= known.nanos {
                self.known = Some(known).filter(|known| *known != self.at);
                return None;
            }
            self.known = None;
        }
        let next = Cursor::of(self.at.nanos, self.at.lines);
        Some(LogLine { at: Time(nanos / 1000), source, text: text.to_owned(), next })
    }
}

/// The time before a line, and the line without its end.
pub(in crate::runtime) fn split(text: &str) -> Option<(i64, &str)> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (time, rest) = text.split_once(' ').unwrap_or((text, ""));
    let at: Time = time.parse().ok()?;
    // What is finer than a time can be is told by its digits alone.
    let digits = time.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let finer: i64 = format!("{digits:0<9}").get(6..9)?.parse().ok()?;
    Some((at.0.checked_mul(1000)?.checked_add(finer)?, rest))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_lines() {
        for (text, expected) in [
            (
                "2023-11-14T22:13:20.123456789Z hello there\n",
                (1_700_000_000_123_456_789, "hello there"),
            ),
            ("2023-11-14T23:13:20+01:00 x", (1_700_000_000_000_000_000, "x")),
            ("2023-11-14T22:13:20.5Z \n", (1_700_000_000_500_000_000, "")),
            ("2023-11-14T22:13:20.000000001Z", (1_700_000_000_000_000_001, "")),
        ] {
            assert_eq!(split(text), Some(expected), "{text}");
        }
        assert_eq!(split("no time"), None);
    }

    #[test]
    fn lines_of_the_same_time_are_counted() {
        let at = At::default().after(5).after(5).after(7);
        assert_eq!(at, At { nanos: 7, lines: 1 });
        assert_eq!(At::of(&Cursor::of(5, 2)), At::default().after(5).after(5));
        assert_eq!(At::of(&Cursor("nonsense".into())), At::default());
    }
}
