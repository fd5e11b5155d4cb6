//! Parses server-sent events, independently of chunk boundaries.

use std::collections::VecDeque;

/// Maximum length of an event.
const MAX_BYTES: usize = 4 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) data: String,
}

/// An event is longer than [`MAX_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Incremental parser of an event stream.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, to which a line feed may belong.
    after_return: bool,
    id: Option<String>,
    /// `id` of the last complete event; a partial event must be sent again.
    last_id: Option<String>,
    data: Vec<String>,
    data_bytes: usize,
    ready: VecDeque<Message>,
}

impl Parser {
    /// Parses the next bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        for &byte in bytes {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
            if self.line.len() + self.data_bytes > MAX_BYTES {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    /// A parser for a stream that is resumed after `last_id`.
    pub(crate) fn after(last_id: Option<String>) -> Self {
        Self { id: last_id.clone(), last_id, ..Self::default() }
    }

    /// Position from which to resume the stream.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Next complete event.
    pub(crate) fn next(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.id = Some(value.into()),
            "data" => {
                self.data_bytes += value.len() + 1;
                self.data.push(value.into());
            }
            // Ignores comments (heartbeats), `event` (repeated in the data) and `retry`.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        self.last_id.clone_from(&self.id);
        if self.data.is_empty() {
            return;
        }
        let data = std::mem::take(&mut self.data).join("\n");
        self.data_bytes = 0;
        self.ready.push_back(Message { data });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let mut parser = Parser::default();
        for piece in pieces {
            parser.feed(piece).unwrap();
        }
        let data = std::iter::from_fn(|| parser.next()).map(|message| message.data).collect();
        (data, parser.last_id)
    }

    #[test]
    fn events_are_parsed() {
        for (text, data, last_id) in [
            ("id: 7\nevent: x\ndata: {}\n\n", &["{}"][..], Some("7")),
            ("data: a\ndata: b\n\n", &["a\nb"], None),
            ("data:a\r\n\r\ndata: b\r\r", &["a", "b"], None),
            (": heartbeat\n\n: again\n\n", &[], None),
            ("id: 5\n\n", &[], Some("5")),
            ("id: 1\ndata: a\n\ndata: b\n\n", &["a", "b"], Some("1")),
            ("id: 1\ndata: a\n\nid: 2\ndata: cut off", &["a"], Some("1")),
            ("id: 2\ndata: cut off\n", &[], None),
            ("data\n\n", &[""], None),
        ] {
            let want = (data.iter().map(ToString::to_string).collect(), last_id.map(Into::into));
            assert_eq!(parse(&[text.as_bytes()]), want, "{text:?}");
        }
    }

    #[test]
    fn events_do_not_depend_on_chunk_boundaries() {
        let text = "id: 1\r\ndata: {\"name\":\"für\"}\r\n\r\n: hm\r\n\r\nid: 2\ndata: b\n\n";
        let text = text.as_bytes();
        let whole = parse(&[text]);
        assert_eq!(whole.0.len(), 2);
        for first in 0..text.len() {
            for second in first..text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(parse(&pieces), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn overlong_event_is_rejected() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; 1 << 16];
        let fed = (0..).map(|_| parser.feed(&piece)).take(100).find(Result::is_err);
        assert_eq!(fed, Some(Err(TooLong)));
    }
}
