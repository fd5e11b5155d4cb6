//! How far the log of one replica has been read, and what to do next. Knows no connections.

use model::log::Cursor;
use model::{ClusterId, Time};
use wire::deployment::ReplicaStatus;

use super::super::super::call::Call;
use super::super::super::lines::End;
use super::line::Line;
use super::{has_ended, place};

/// After so many looks, an open log whose replica has ended or moved is not waited for any more.
const PATIENCE: u8 = 2;

/// What to do about a replica's log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Nothing.
    Keep,
    /// Close it: it has nothing more to say.
    Close,
    /// Open it where it was left.
    Open,
}

/// How far a log has been read.
#[derive(Debug, Default)]
pub(super) struct Reader {
    tail: Option<u32>,
    /// Where to go on; it means something only where the replica then was.
    cursor: Option<Cursor>,
    place: Option<(ClusterId, String)>,
    /// The last line that was shown.
    last: Option<(Time, String)>,
    /// Since it was opened, nothing new has come.
    is_joining: bool,
    /// How often it was open for no reason.
    stale_looks: u8,
    /// Whether the replica had ended when the log was opened.
    is_last: bool,
    is_done: bool,
}

impl Reader {
    /// Has read nothing.
    pub(super) fn new(tail: Option<u32>) -> Self {
        Self { tail, ..Self::default() }
    }

    /// Whether all was read that there will ever be.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// What to do, now that the replica is so.
    pub(super) fn next(&mut self, replica: &ReplicaStatus, is_open: bool) -> Opening {
        let (place, has_ended) = (place(replica), has_ended(replica));
        if is_open {
            let is_stale = (has_ended && !self.is_last) || (!has_ended && place != self.place);
            self.stale_looks = if is_stale { self.stale_looks + 1 } else { 0 };
            return if self.stale_looks >= PATIENCE { Opening::Close } else { Opening::Keep };
        }
        self.stale_looks = 0;
        if !has_ended && place != self.place {
            // It starts anew elsewhere, where the old cursor means nothing.
            let tail = if self.place.is_none() { self.tail } else { None };
            *self = Self { tail, place, ..Self::default() };
        }
        if self.is_done || (!has_ended && self.place.is_none()) {
            return Opening::Keep;
        }
        (self.is_joining, self.is_last) = (true, has_ended);
        Opening::Open
    }

    /// The call that goes on where it was left.
    pub(super) fn from(&self, call: Call) -> Call {
        match &self.cursor {
            Some(cursor) => call.query("after", Some(cursor)),
            None => call.query("tail", self.tail),
        }
    }

    /// Takes a line, and tells whether it is new: where a cursor is no longer known, the server
    /// begins again.
    pub(super) fn take(&mut self, line: &Line) -> bool {
        let line = &line.said;
        self.cursor = Some(line.next.clone());
        let is_known = |last| is_known(last, line.at, &line.text);
        if self.is_joining && self.last.as_ref().is_some_and(is_known) {
            return false;
        }
        self.is_joining = false;
        self.last = Some((line.at, line.text.clone()));
        true
    }

    /// The log was closed from the other side.
    pub(super) fn closed(&mut self, end: End) {
        self.is_done = self.is_last && end == End::Whole;
    }
}

/// Whether a line is the last one that was shown, or was said before it.
fn is_known((last_at, last_text): &(Time, String), at: Time, text: &str) -> bool {
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
        let said = json!({
            "replica": 0, "at": format!("2026-01-02T03:04:{second:02}Z"), "source": "stdout",
            "text": text, "next": format!("n{second}"),
        });
        Line::read(said.to_string().as_bytes()).unwrap()
    }

    fn query(reader: &Reader) -> Vec<(&'static str, String)> {
        reader.from(Call::get(&["logs"])).query
    }

    #[test]
    fn a_log_is_opened_where_there_is_one_and_again_where_it_broke() {
        let mut reader = Reader::new(Some(5));
        assert_eq!(reader.next(&replica("queued", None), false), Opening::Keep);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Opening::Open);
        assert_eq!(query(&reader), [("tail", "5".into())]);
        assert!(reader.take(&line(1, "x")));
        assert_eq!(reader.next(&replica("running", Some("a")), true), Opening::Keep);
        reader.closed(End::Broken);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Opening::Open);
        assert_eq!(query(&reader), [("after", "n1".into())]);
        assert!(!reader.is_done());
    }

    #[test]
    fn it_is_done_when_all_was_read_of_what_has_ended() {
        let mut reader = Reader::new(None);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Opening::Open);
        // The end of this one may be that of the server.
        reader.closed(End::Whole);
        assert!(!reader.is_done());
        for (end, is_done) in [(End::Broken, false), (End::Whole, true)] {
            assert_eq!(reader.next(&replica("completed", None), false), Opening::Open);
            reader.closed(end);
            assert_eq!(reader.is_done(), is_done);
        }
        assert_eq!(reader.next(&replica("completed", None), false), Opening::Keep);
    }

    #[test]
    fn a_log_that_does_not_end_with_its_replica_is_closed_and_read_to_its_end() {
        let mut reader = Reader::new(None);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Opening::Open);
        assert!(reader.take(&line(1, "x")));
        assert_eq!(reader.next(&replica("completed", None), true), Opening::Keep);
        assert_eq!(reader.next(&replica("completed", None), true), Opening::Close);
        assert_eq!(reader.next(&replica("completed", None), false), Opening::Open);
        assert_eq!(query(&reader), [("after", "n1".into())]);
    }

    #[test]
    fn elsewhere_it_begins_anew() {
        let mut reader = Reader::new(Some(5));
        assert_eq!(reader.next(&replica("running", Some("a")), false), Opening::Open);
        assert!(reader.take(&line(7, "x")));
        assert_eq!(reader.next(&replica("preempted", None), false), Opening::Keep);
        assert_eq!(reader.next(&replica("running", Some("b")), false), Opening::Open);
        assert_eq!(query(&reader), []);
        assert!(reader.take(&line(1, "another clock")));
    }

    #[test]
    fn what_was_shown_is_not_shown_again() {
        let mut reader = Reader::new(None);
        assert_eq!(reader.next(&replica("running", Some("a")), false), Opening::Open);
        assert!(reader.take(&line(1, "x")) && reader.take(&line(2, "y")));
        assert!(reader.take(&line(1, "a clock that was set back")));
        assert!(reader.take(&line(2, "y")));
        assert_eq!(reader.next(&replica("completed", None), false), Opening::Open);
        let again = [line(1, "x"), line(2, "y"), line(2, "z"), line(1, "w")];
        assert_eq!(again.map(|line| reader.take(&line)), [false, false, true, true]);
    }
}
