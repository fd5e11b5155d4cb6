//! Reads container logs.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

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

/// Position in a log. Valid until its file is rotated away.
#[derive(Debug, Clone, Copy, Default)]
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
    follow: bool,
    skip_to_last: Option<usize>,
    ready: VecDeque<LogLine>,
}

impl Reader {
    fn new(bundle: Bundle, from: &LogsFrom, follow: bool) -> Self {
        let (at, skip_to_last) = match from {
            LogsFrom::Start => (Position::default(), None),
            LogsFrom::Last(count) => (Position::default(), Some(*count)),
            LogsFrom::After(cursor) => (cursor.into(), None),
        };
        Self { bundle, at, follow, skip_to_last, ready: VecDeque::new() }
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
            if self.read().await {
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
    async fn read(&mut self) -> bool {
        let (bundle, at) = (self.bundle.clone(), self.at);
        let read = tokio::task::spawn_blocking(move || read(&bundle, at)).await;
        let Ok(Some((lines, next))) = read else { return false };
        self.at = next;
        self.ready.extend(lines);
        true
    }
}

/// Reads one chunk of lines after a position. Returns them and the position after them.
fn read(bundle: &Bundle, at: Position) -> Option<(Vec<LogLine>, Position)> {
    let numbers = log_numbers(&bundle.logs());
    // A reader that was too slow continues with the oldest file left.
    let file = numbers.iter().copied().find(|number| *number >= at.file)?;
    let at = if file == at.file { at } else { Position { file, offset: 0 } };
    let mut buffer = vec![0; CHUNK];
    let n = File::open(bundle.logs().join(log_file_name(file)))
        .and_then(|file| file.read_at(&mut buffer, at.offset))
        .unwrap_or(0);
    let end = buffer[..n].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if end == 0 {
        let later = numbers.into_iter().find(|number| *number > file)?;
        return Some((Vec::new(), Position { file: later, offset: 0 }));
    }
    let mut next = at;
    let mut lines = Vec::new();
    for line in buffer[..end].split_inclusive(|byte| *byte == b'\n') {
        next.offset += line.len() as u64;
        if let Ok(Record { at, from, text }) = serde_json::from_slice(line) {
            let next = Cursor::from_numbers(next.file, next.offset);
            lines.push(LogLine { at: Time(at), source: from, text, next });
        }
    }
    Some((lines, next))
}
