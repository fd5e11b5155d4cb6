//! One line of a deployment's log.

use serde::Deserialize;

/// One line of a log.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Line {
    pub(super) replica: u32,
    pub(super) at: String,
    pub(super) text: String,
    /// Where to go on after it.
    pub(super) next: String,
    /// As it came.
    #[serde(skip)]
    pub(super) raw: String,
}

impl Line {
    /// Reads a line; nothing if it is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let raw = String::from_utf8(bytes.to_vec()).ok()?;
        let line: Self = serde_json::from_str(&raw).ok()?;
        Some(Self { raw, ..line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_line_of_a_log_is_not_read() {
        let line = br#"{"replica":1,"at":"t","source":"stderr","text":"x","next":"7-1"}"#;
        let read = Line::read(line).unwrap();
        assert_eq!((read.replica, &*read.next, read.raw.as_bytes()), (1, "7-1", &line[..]));
        for bad in [&b"<html>"[..], b"{}", b"\xff", b"[1]"] {
            assert!(Line::read(bad).is_none());
        }
    }
}
