//! One line of a deployment's log.

/// One line of a log.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) said: wire::log::Line,
    /// As it came.
    pub(super) raw: String,
}

impl Line {
    /// Reads a line; nothing if it is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let raw = String::from_utf8(bytes.to_vec()).ok()?;
        let said = serde_json::from_str(&raw).ok()?;
        Some(Self { said, raw })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_line_of_a_log_is_not_read() {
        let line = br#"{"replica":1,"at":"2026-01-02T03:04:05Z","source":"stderr","text":"x","next":"7-1"}"#;
        let read = Line::read(line).unwrap();
        assert_eq!((read.said.replica, &*read.said.next.0), (1, "7-1"));
        assert_eq!(read.raw.as_bytes(), line);
        for bad in [&b"<html>"[..], b"{}", b"\xff", b"[1]"] {
            assert!(Line::read(bad).is_none());
        }
    }
}
