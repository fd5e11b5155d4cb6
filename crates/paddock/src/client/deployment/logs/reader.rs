//! Read position in the log of one replica, and the next action. Performs no I/O.

use model::log::Cursor;
use model::{ClusterId, Time};
use wire::deployment::ReplicaStatus;

use super::super::super::call::Call;
use super::super::super::lines::End;
use super::line::Line;
use super::{has_ended, place};

/// Number of polls after which an open log whose replica has ended or moved is closed.
const MAX_STALE_POLLS: u8 = 2;

/// Next action for a replica's log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Leave it open or closed.
    Keep,
    /// Close it: no more output.
    Close,
    /// Open it at the last position.
    Open,
}

/// Read position in a log.
#[derive(Debug, Default)]
pub(super) struct Reader {
    tail: Option<u32>,
    /// Position after the last line; valid only for `place`.
    cursor: Option<Cursor>,
    place: Option<(ClusterId, String)>,
    /// The last line that was shown.
    last: Option<(Time, String)>,
    /// Whether no new line has arrived since the log was opened.
    is_joining: bool,
    /// Consecutive polls in which the log was open although its replica had ended or moved.
    stale_polls: u8,
    /// Whether the replica had ended when the log was opened.
    is_last: bool,
    is_done: bool,
}

impl Reader {
    /// Starts with the last `tail` lines.
    pub(super) fn new(tail: Option<u32>) -> Self {
        Self { tail, ..Self::default() }
    }

    /// Whether the complete log has been read.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Decides the next action from the replica's state.
    pub(super) fn next(&mut self, replica: &ReplicaStatus, is_open: bool) -> Action {
        let (place, has_ended) = (place(replica), has_ended(replica));
        if is_open {
            let is_stale = (has_ended && !self.is_last) || (!has_ended && place != self.place);
            self.stale_polls = if is_stale { self.stale_polls + 1 } else { 0 };
            return if self.stale_polls >= MAX_STALE_POLLS { Action::Close } else { Action::Keep };
        }
        self.stale_polls = 0;
        if !has_ended && place != self.place {
            // The replica restarts at another place, where the old cursor is invalid.
            let tail = if self.place.is_none() { self.tail } else { None };
            *self = Self { tail, place, ..Self::default() };
        }
        if self.is_done || (!has_ended && self.place.is_none()) {
            return Action::Keep;
        }
        (self.is_joining, self.is_last) = (true, has_ended);
        Action::Open
    }

    /// Adds the read position to the call.
    pub(super) fn resume(&self, call: Call) -> Call {
        match &self.cursor {
            Some(cursor) => call.query("after", Some(cursor)),
            None => call.query("tail", self.tail),
        }
    }

    /// Records a line and returns whether it is new: if a cursor is no longer valid, the server
    /// restarts from the beginning.
    pub(super) fn accept(&mut self, line: &Line) -> bool {
        let line = &line.parsed;
        self.cursor = Some(line.next.clone());
        let is_shown = |last| is_shown(last, line.at, &line.text);
        if self.is_joining && self.last.as_ref().is_some_and(is_shown) {
            return false;
        }
        self.is_joining = false;
        self.last = Some((line.at, line.text.clone()));
        true
    }

    /// Records that the server closed the log.
    pub(super) fn closed(&mut self, end: End) {
        self.is_done = self.is_last && end == End::Complete;
    }
}

/// Whether a line is the last shown one or precedes it.
fn is_shown((last_at, last_text): &(Time, String), at: Time, text: &str) -> bool {
    at < *last_at || (at == *last_at && text == last_text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::super::sample;
    use super::*;

    fn replica(status: &str, node: Option<&str>) -> ReplicaStatus {
        let cluster_id = node.map(|_| sample::id("c"));
        sample::replica(json!({"status": status, "cluster_id": cluster_id, "node": node}))
    }

    fn line(second: u32, text: &str) -> Line {
        let line = json!({
            "replica": 0, "at": format!("2026-01-02T03:04:{second:02}Z"), "source": "stdout",
            "text": text, "next": format!("n{second}"),
        });
        Line::read(line.to_string().as_bytes()).unwrap()
    }

    fn query(reader: &Reader) -> Vec<(&'static str, String)> {
        reader.resume(Call::get(&["logs"])).query
    }

    #[test]
    fn broken_log_is_resumed_after_the_last_line() {
        let mut reader = Reader::new(Some(5));
        assert_eq!(reader.next(&replica("queued", None), false), Action::Keep);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Action::Open);
        assert_eq!(query(&reader), [("tail", "5".into())]);
        assert!(reader.accept(&line(1, "x")));
        assert_eq!(reader.next(&replica("running", Some("a")), true), Action::Keep);
        reader.closed(End::Broken);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Action::Open);
        assert_eq!(query(&reader), [("after", "n1".into())]);
        assert!(!reader.is_done());
    }

    #[test]
    fn reader_is_done_when_the_log_of_an_ended_replica_is_complete() {
        let mut reader = Reader::new(None);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Action::Open);
        // The replica is still running: the server may have stopped.
        reader.closed(End::Complete);
        assert!(!reader.is_done());
        for (end, is_done) in [(End::Broken, false), (End::Complete, true)] {
            assert_eq!(reader.next(&replica("completed", None), false), Action::Open);
            reader.closed(end);
            assert_eq!(reader.is_done(), is_done);
        }
        assert_eq!(reader.next(&replica("completed", None), false), Action::Keep);
    }

    #[test]
    fn log_that_stays_open_after_its_replica_ended_is_reopened() {
        let mut reader = Reader::new(None);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Action::Open);
        assert!(reader.accept(&line(1, "x")));
        assert_eq!(reader.next(&replica("completed", None), true), Action::Keep);
        assert_eq!(reader.next(&replica("completed", None), true), Action::Close);
        assert_eq!(reader.next(&replica("completed", None), false), Action::Open);
        assert_eq!(query(&reader), [("after", "n1".into())]);
    }

    #[test]
    fn reader_restarts_when_the_replica_moves() {
        let mut reader = Reader::new(Some(5));
        assert_eq!(reader.next(&replica("running", Some("a")), false), Action::Open);
        assert!(reader.accept(&line(7, "x")));
        assert_eq!(reader.next(&replica("preempted", None), false), Action::Keep);
        assert_eq!(reader.next(&replica("running", Some("b")), false), Action::Open);
        assert_eq!(query(&reader), []);
        assert!(reader.accept(&line(1, "another clock")));
    }

    #[test]
    fn lines_are_not_repeated_after_reopening() {
        let mut reader = Reader::new(None);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Action::Open);
        assert!(reader.accept(&line(1, "x")) && reader.accept(&line(2, "y")));
        assert!(reader.accept(&line(1, "a clock that was set back")));
        assert!(reader.accept(&line(2, "y")));
        assert_eq!(reader.next(&replica("completed", None), false), Action::Open);
        let again = [line(1, "x"), line(2, "y"), line(2, "z"), line(1, "w")];
        assert_eq!(again.map(|line| reader.accept(&line)), [false, false, true, true]);
    }
}
