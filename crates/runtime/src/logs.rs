//! Reads container logs.
//!
//! A reader that does not follow ends at the position that the log had at its start: a container may
//! write faster than anybody reads. A follower is limited in its rate; what is rotated away meanwhile
//! is skipped.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use base::Instant;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use model::Time;
use model::log::{Cursor, LogLine, LogsFrom};

use super::plan::Bundle;
use super::running::is_alive;
use super::shim::{Record, log_file_name, log_numbers};
use super::{Embedded, container};

/// Stream of log lines.
pub type LogStream = BoxStream<'static, LogLine>;

/// Poll interval of a follower.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes per read. No line is longer.
const CHUNK: usize = 256 << 10;

/// Sustained rate of a follower, and how much it may read at once.
const FOLLOW_BYTES_PER_SEC: f64 = 1024.0 * 1024.0;
const FOLLOW_BURST: f64 = 4.0 * FOLLOW_BYTES_PER_SEC;

/// Position in a log. Valid until its file is rotated away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    file: u32,
    offset: u64,
}

impl From<&Cursor> for Position {
    fn from(cursor: &Cursor) -> Self {
        cursor.numbers().map_or_else(Self::default, |(file, offset)| Self { file, offset })
    }
}

impl Embedded {
    /// Streams a container's log; with `follow`, until the container ends.
    pub fn logs(&self, name: &str, from: &LogsFrom, follow: bool) -> LogStream {
        let bundle = container::check_name(name).ok().map(|()| self.bundle(name));
        let reader = bundle.map(|bundle| Reader::new(bundle, from, follow));
        stream::unfold(reader, async |reader| {
            let mut reader = reader?;
            reader.next().await.map(|line| (line, Some(reader)))
        })
        .boxed()
    }
}

struct Reader {
    bundle: Bundle,
    at: Position,
    /// End of the log at the request.
    end: Position,
    follow: bool,
    skip_to_last: Option<usize>,
    ready: VecDeque<LogLine>,
    budget: Budget,
}

impl Reader {
    fn new(bundle: Bundle, from: &LogsFrom, follow: bool) -> Self {
        let (at, skip_to_last) = match from {
            LogsFrom::Start => (Position::default(), None),
            LogsFrom::Last(count) => (Position::default(), Some(*count)),
            LogsFrom::After(cursor) => (cursor.into(), None),
        };
        let (end, budget) = (end(&bundle), Budget::new());
        Self { bundle, at, end, follow, skip_to_last, ready: VecDeque::new(), budget }
    }

    async fn next(&mut self) -> Option<LogLine> {
        loop {
            if self.skip_to_last.is_none()
                && let Some(line) = self.ready.pop_front()
            {
                return Some(line);
            }
            // In this order: a shim writes its last lines before it ends.
            let is_alive = is_alive(&self.bundle);
            // The last lines are those before the request, or they would never be found.
            let is_bounded = !self.follow || self.skip_to_last.is_some();
            if !is_bounded {
                self.budget.wait().await;
            }
            let is_before_end = !is_bounded || self.at < self.end;
            if is_before_end && self.read(is_bounded).await {
                self.drop_older();
                continue;
            }
            if self.skip_to_last.take().is_some() {
                continue;
            }
            if !self.follow || !is_alive {
                return None;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Drops all but the last requested lines.
    fn drop_older(&mut self) {
        let keep = self.skip_to_last.unwrap_or(usize::MAX);
        while self.ready.len() > keep {
            self.ready.pop_front();
        }
    }

    /// Reads the next chunk, of this file or the next. Returns false at the end.
    async fn read(&mut self, is_bounded: bool) -> bool {
        let (bundle, at) = (self.bundle.clone(), self.at);
        let end = is_bounded.then_some(self.end);
        let read = tokio::task::spawn_blocking(move || read(&bundle, at, end)).await;
        let Ok(Some((lines, next))) = read else { return false };
        if next.file == self.at.file {
            self.budget.charge(next.offset.saturating_sub(self.at.offset));
        } else {
            self.budget.charge(next.offset);
        }
        self.at = next;
        self.ready.extend(lines);
        true
    }
}

/// What a follower may read, in bytes; negative: it must wait.
struct Budget {
    left: f64,
    at: Instant,
}

impl Budget {
    fn new() -> Self {
        Self { left: FOLLOW_BURST, at: base::monotonic() }
    }

    #[expect(clippy::cast_precision_loss, reason = "chunks are small")]
    fn charge(&mut self, bytes: u64) {
        self.left -= bytes as f64;
    }

    /// Waits until something may be read.
    async fn wait(&mut self) {
        let now = base::monotonic();
        let earned = now.saturating_duration_since(self.at).as_secs_f64() * FOLLOW_BYTES_PER_SEC;
        (self.left, self.at) = ((self.left + earned).min(FOLLOW_BURST), now);
        if self.left < 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(-self.left / FOLLOW_BYTES_PER_SEC)).await;
        }
    }
}

/// The end of a log.
fn end(bundle: &Bundle) -> Position {
    let Some(file) = log_numbers(&bundle.logs()).pop() else { return Position::default() };
    let metadata = std::fs::metadata(bundle.logs().join(log_file_name(file)));
    Position { file, offset: metadata.map_or(0, |metadata| metadata.len()) }
}

/// Reads one chunk of lines after a position, up to `end`. Returns them and the position after them.
fn read(bundle: &Bundle, at: Position, end: Option<Position>) -> Option<(Vec<LogLine>, Position)> {
    let numbers = log_numbers(&bundle.logs());
    // A reader that was too slow continues with the oldest file left.
    let file = numbers.iter().copied().find(|number| *number >= at.file)?;
    let at = if file == at.file { at } else { Position { file, offset: 0 } };
    let length = match end {
        Some(end) if at >= end => return None,
        Some(end) if file == end.file => usize::try_from(end.offset - at.offset).ok()?.min(CHUNK),
        _ => CHUNK,
    };
    let mut buffer = vec![0; length];
    let n = File::open(bundle.logs().join(log_file_name(file)))
        .and_then(|file| file.read_at(&mut buffer, at.offset))
        .unwrap_or(0);
    let complete = buffer[..n].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    if complete == 0 {
        let later = numbers.into_iter().find(|number| *number > file)?;
        return Some((Vec::new(), Position { file: later, offset: 0 }));
    }
    let mut next = at;
    let mut lines = Vec::new();
    for line in buffer[..complete].split_inclusive(|byte| *byte == b'\n') {
        next.offset += line.len() as u64;
        if let Ok(Record { at, from, text }) = serde_json::from_slice(line) {
            let next = Cursor::from_numbers(next.file, next.offset);
            lines.push(LogLine { at: Time(at), source: from, text, next });
        }
    }
    Some((lines, next))
}
