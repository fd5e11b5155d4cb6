//! Reading what containers said.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use model::Time;
use model::log::{Cursor, LogLine, LogsFrom};

use super::plan::Place;
use super::running::is_alive;
use super::shim::{Record, log_file_name, log_numbers};
use super::{Embedded, container};

/// Lines of a log, as they come.
pub type LogStream = BoxStream<'static, LogLine>;

/// How often a follower looks for more.
const LOOK: Duration = Duration::from_millis(100);
/// How much is read at once. No line is longer.
const CHUNK: usize = 256 << 10;

/// A place in a log. Stays valid until the part it is in is rotated away.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    file: u32,
    offset: u64,
}

impl From<&Cursor> for At {
    fn from(cursor: &Cursor) -> Self {
        cursor.numbers().map_or_else(At::default, |(file, offset)| At { file, offset })
    }
}

impl Embedded {
    /// What a container said, and, to who follows, what it says until it ends.
    pub fn logs(&self, name: &str, from: &LogsFrom, follow: bool) -> LogStream {
        let place = container::check_name(name).ok().map(|()| self.place(name));
        let reader = place.map(|place| Reader::new(place, from, follow));
        stream::unfold(reader, async |reader| {
            let mut reader = reader?;
            reader.next().await.map(|line| (line, Some(reader)))
        })
        .boxed()
    }
}

struct Reader {
    place: Place,
    at: At,
    follow: bool,
    skip_to_last: Option<usize>,
    ready: VecDeque<LogLine>,
}

impl Reader {
    fn new(place: Place, from: &LogsFrom, follow: bool) -> Self {
        let (at, skip_to_last) = match from {
            LogsFrom::Start => (At::default(), None),
            LogsFrom::Last(count) => (At::default(), Some(*count)),
            LogsFrom::After(cursor) => (cursor.into(), None),
        };
        Self { place, at, follow, skip_to_last, ready: VecDeque::new() }
    }

    async fn next(&mut self) -> Option<LogLine> {
        loop {
            if self.skip_to_last.is_none()
                && let Some(line) = self.ready.pop_front()
            {
                return Some(line);
            }
            // In this order: what a shim writes last it writes before it ends.
            let is_alive = is_alive(&self.place);
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
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Of those before the last ones none is kept.
    fn drop_older(&mut self) {
        let keep = self.skip_to_last.unwrap_or(usize::MAX);
        while self.ready.len() > keep {
            self.ready.pop_front();
        }
    }

    /// Reads some more, of this file or the next; false when there is no more yet.
    async fn read(&mut self) -> bool {
        let (place, at) = (self.place.clone(), self.at);
        let read = tokio::task::spawn_blocking(move || read(&place, at)).await;
        let Ok(Some((lines, next))) = read else { return false };
        self.at = next;
        self.ready.extend(lines);
        true
    }
}

/// The lines after a place, as many as are read at once, and the place after them.
fn read(place: &Place, at: At) -> Option<(Vec<LogLine>, At)> {
    let numbers = log_numbers(&place.logs());
    // What a reader has missed meanwhile is gone: it goes on with what there is.
    let file = numbers.iter().copied().find(|number| *number >= at.file)?;
    let at = if file == at.file { at } else { At { file, offset: 0 } };
    let mut buffer = vec![0; CHUNK];
    let n = File::open(place.logs().join(log_file_name(file)))
        .and_then(|file| file.read_at(&mut buffer, at.offset))
        .unwrap_or(0);
    let end = buffer[..n].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if end == 0 {
        let later = numbers.into_iter().find(|number| *number > file)?;
        return Some((Vec::new(), At { file: later, offset: 0 }));
    }
    let mut next = at;
    let mut lines = Vec::new();
    for line in buffer[..end].split_inclusive(|byte| *byte == b'\n') {
        next.offset += line.len() as u64;
        if let Ok(Record { at, from, text }) = serde_json::from_slice(line) {
            let next = Cursor::of(next.file, next.offset);
            lines.push(LogLine { at: Time(at), source: from, text, next });
        }
    }
    Some((lines, next))
}
