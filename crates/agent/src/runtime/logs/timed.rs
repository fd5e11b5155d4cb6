//! Logs of those who only know times: lines that are known already are passed over by place.

use model::Time;

use model::log::{Cursor, LogLine, Source};

/// A place in a log: engines only know times, and many lines may have the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct At {
    /// Nanoseconds since 1970.
    nanos: i64,
    /// How many lines of that time are before it.
    lines: u64,
}

impl At {
    /// The place after a line of this time that follows.
    fn after(self, nanos: i64) -> Self {
        if nanos == self.nanos {
            At { nanos, lines: self.lines + 1 }
        } else {
            At { nanos, lines: 1 }
        }
    }

    fn of(cursor: &Cursor) -> Self {
        cursor.numbers().map_or_else(At::default, |(nanos, lines)| At { nanos, lines })
    }
}

/// How far a log was read, over all the times that it was opened.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Progress {
    at: At,
    /// Lines up to here are known already; none once that place was passed.
    known: Option<At>,
}

impl Progress {
    /// As far as that place.
    pub(in crate::runtime) fn after(cursor: &Cursor) -> Self {
        Self { at: At::of(cursor), known: None }
    }

    /// The second from which on the log is needed.
    pub(in crate::runtime) fn since_secs(&self) -> i64 {
        self.at.nanos / 1_000_000_000
    }

    /// The log was opened, from that second on: what is known comes again first.
    pub(in crate::runtime) fn opened(&mut self) {
        self.known = Some(self.at).filter(|at| at.lines > 0);
        self.at = At::default();
    }

    /// The log broke off, perhaps before all that is known had come again.
    pub(in crate::runtime) fn broke_off(&mut self) {
        self.at = self.known.take().unwrap_or(self.at);
    }

    /// A line as it came, with its time before it; none if it is known already.
    pub(in crate::runtime) fn line(&mut self, text: &str, source: Source) -> Option<LogLine> {
        let (nanos, text) = split(text)?;
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
fn split(text: &str) -> Option<(i64, &str)> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (time, rest) = text.split_once(' ').unwrap_or((text, ""));
    let at: Time = time.parse().ok()?;
    // What is finer than a time can be is told by its digits alone.
    let digits = time.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let finer: i64 = format!("{digits:0<9}").get(6..9)?.parse().ok()?;
    Some((at.0.checked_mul(1000)?.checked_add(finer)?, rest))
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

    #[test]
    fn what_is_known_is_passed_over_when_a_log_is_opened_again() {
        let log = ["2023-11-14T22:13:20Z a", "2023-11-14T22:13:20Z b", "2023-11-14T22:13:21Z c"];
        let mut progress = Progress::default();
        let read = |progress: &mut Progress, lines: &[&str]| -> Vec<String> {
            let lines = lines.iter().filter_map(|line| progress.line(line, Source::Stdout));
            lines.map(|line| line.text).collect()
        };
        progress.opened();
        assert_eq!(read(&mut progress, &log[..2]), ["a", "b"]);
        // It breaks off before all that is known has come again.
        progress.broke_off();
        progress.opened();
        assert!(read(&mut progress, &log[..1]).is_empty());
        progress.broke_off();
        progress.opened();
        assert_eq!(progress.since_secs(), 0);
        assert_eq!(read(&mut progress, &log), ["c"]);
        assert_eq!(progress.since_secs(), 1_700_000_001);
    }
}
