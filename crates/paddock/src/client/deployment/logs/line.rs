//! One line of a deployment's log.

/// One line of a log.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) parsed: wire::log::Line,
    /// JSON as received.
    pub(super) raw: String,
}

impl Line {
    /// Parses a line; `None` if it is invalid.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let raw = String::from_utf8(bytes.to_vec()).ok()?;
        let parsed = serde_json::from_str(&raw).ok()?;
        Some(Self { parsed, raw })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lines_are_rejected() {
        let line = br#"{"replica":1,"at":"2026-01-02T03:04:05Z","source":"stderr","text":"x","next":"7-1"}"#;
        let read = Line::read(line).unwrap();
        assert_eq!((read.parsed.replica, &*read.parsed.next.0), (1, "7-1"));
        assert_eq!(read.raw.as_bytes(), line);
        for bad in [&b"<html>"[..], b"{}", b"\xff", b"[1]"] {
            assert!(Line::read(bad).is_none());
        }
    }
}
