//! Positions in logs of engines that identify lines by time only.

use model::Time;

use model::log::{Cursor, LogLine, Source};

/// Position in a log: a time, and a line number, since many lines may have the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Position {
    /// Nanoseconds since the Unix epoch.
    nanos: i64,
    /// Number of lines with that time before this position.
    lines: u64,
}

impl Position {
    /// The position after the next line, which has this time.
    fn after(self, nanos: i64) -> Self {
        if nanos == self.nanos {
            Self { nanos, lines: self.lines + 1 }
        } else {
            Self { nanos, lines: 1 }
        }
    }

    fn from_cursor(cursor: &Cursor) -> Self {
        cursor.numbers().map_or_else(Self::default, |(nanos, lines)| Self { nanos, lines })
    }
}

/// How far a log was read, across reconnects.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Progress {
    at: Position,
    /// Lines up to this position were read before; none once it was passed.
    skip_to: Option<Position>,
}

impl Progress {
    /// Starts after a cursor.
    pub(in crate::runtime) fn after(cursor: &Cursor) -> Self {
        Self { at: Position::from_cursor(cursor), skip_to: None }
    }

    /// The second from which the log must be read.
    pub(in crate::runtime) fn since_secs(&self) -> i64 {
        self.at.nanos / 1_000_000_000
    }

    /// The log was opened from that second: lines read before come again first.
    pub(in crate::runtime) fn opened(&mut self) {
        self.skip_to = Some(self.at).filter(|at| at.lines > 0);
        self.at = Position::default();
    }

    /// The log broke off, perhaps before all skipped lines had come again.
    pub(in crate::runtime) fn interrupted(&mut self) {
        self.at = self.skip_to.take().unwrap_or(self.at);
    }

    /// Parses a line that begins with its time; none if it was read before.
    pub(in crate::runtime) fn line(&mut self, text: &str, source: Source) -> Option<LogLine> {
        let (nanos, text) = split(text)?;
        self.at = self.at.after(nanos);
        if let Some(end) = self.skip_to {
            // Times may go back a little from line to line, so positions are compared for equality.
            if self.at.nanos <= end.nanos {
                self.skip_to = Some(end).filter(|end| *end != self.at);
                return None;
            }
            self.skip_to = None;
        }
        let next = Cursor::from_numbers(self.at.nanos, self.at.lines);
        Some(LogLine { at: Time(nanos / 1000), source, text: text.to_owned(), next })
    }
}

/// Splits a line into its time and its text.
fn split(text: &str) -> Option<(i64, &str)> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (time, rest) = text.split_once(' ').unwrap_or((text, ""));
    let at: Time = time.parse().ok()?;
    // `Time` has microseconds; the finer digits are parsed separately.
    let digits = time.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let finer: i64 = format!("{digits:0<9}").get(6..9)?.parse().ok()?;
    Some((at.0.checked_mul(1000)?.checked_add(finer)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_into_time_and_text() {
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
    fn lines_with_the_same_time_are_counted() {
        let at = Position::default().after(5).after(5).after(7);
        assert_eq!(at, Position { nanos: 7, lines: 1 });
        let cursor = Cursor::from_numbers(5, 2);
        assert_eq!(Position::from_cursor(&cursor), Position::default().after(5).after(5));
        assert_eq!(Position::from_cursor(&Cursor("nonsense".into())), Position::default());
    }

    #[test]
    fn lines_read_before_are_skipped_after_a_reconnect() {
        let log = ["2023-11-14T22:13:20Z a", "2023-11-14T22:13:20Z b", "2023-11-14T22:13:21Z c"];
        let mut progress = Progress::default();
        let read = |progress: &mut Progress, lines: &[&str]| -> Vec<String> {
            let lines = lines.iter().filter_map(|line| progress.line(line, Source::Stdout));
            lines.map(|line| line.text).collect()
        };
        progress.opened();
        assert_eq!(read(&mut progress, &log[..2]), ["a", "b"]);
        // It breaks off before all skipped lines have come again.
        progress.interrupted();
        progress.opened();
        assert!(read(&mut progress, &log[..1]).is_empty());
        progress.interrupted();
        progress.opened();
        assert_eq!(progress.since_secs(), 0);
        assert_eq!(read(&mut progress, &log), ["c"]);
        assert_eq!(progress.since_secs(), 1_700_000_001);
    }
}
