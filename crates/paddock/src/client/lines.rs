//! A stream of lines, split independently of chunk boundaries.

use std::collections::VecDeque;

use reqwest::Response;

use super::call::Call;
use super::error::Error;
use super::http::Api;

/// Maximum length of a line.
const MAX_BYTES: usize = 4 << 20;

/// Reason for the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The log is complete, or the server stopped, which looks the same.
    Complete,
    /// The connection broke.
    Broken,
    /// The response is not a log.
    Invalid,
}

/// An open log.
pub(crate) struct Lines {
    response: Response,
    splitter: LineSplitter,
}

impl Lines {
    /// Opens a log.
    pub(crate) async fn open(api: &Api, call: &Call) -> Result<Self, Error> {
        Ok(Self { response: api.lines(call).await?, splitter: LineSplitter::default() })
    }

    /// Waits for the next line and parses it.
    pub(crate) async fn next<T>(&mut self, read: fn(&[u8]) -> Option<T>) -> Result<T, End> {
        loop {
            if let Some(bytes) = self.splitter.next() {
                return read(&bytes).ok_or(End::Invalid);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.splitter.feed(&bytes)?,
                // A partial line is sent again when the log is resumed after the last full line.
                Ok(None) => return Err(End::Complete),
                Err(_) => return Err(End::Broken),
            }
        }
    }
}

/// Splits bytes into lines.
#[derive(Debug, Default)]
struct LineSplitter {
    partial: Vec<u8>,
    ready: VecDeque<Vec<u8>>,
}

impl LineSplitter {
    fn feed(&mut self, bytes: &[u8]) -> Result<(), End> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(rest) => {
                    self.partial.extend_from_slice(rest);
                    self.ready.push_back(std::mem::take(&mut self.partial));
                }
                None => self.partial.extend_from_slice(piece),
            }
        }
        if self.partial.len() > MAX_BYTES { Err(End::Invalid) } else { Ok(()) }
    }

    /// Next non-empty line.
    fn next(&mut self) -> Option<Vec<u8>> {
        std::iter::from_fn(|| self.ready.pop_front()).find(|line| !line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut splitter = LineSplitter::default();
        for piece in pieces {
            splitter.feed(piece).unwrap();
        }
        std::iter::from_fn(|| splitter.next()).collect()
    }

    #[test]
    fn lines_do_not_depend_on_chunk_boundaries() {
        let text = "{\"text\":\"für\"}\n\nb\nunfinished".as_bytes();
        let want = [b"{\"text\":\"f\xc3\xbcr\"}".to_vec(), b"b".to_vec()];
        for at in 0..text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]]), want, "split at {at}");
        }
    }

    #[test]
    fn overlong_line_is_rejected() {
        let mut splitter = LineSplitter::default();
        let piece = vec![b'x'; 1 << 16];
        let fed = (0..100).map(|_| splitter.feed(&piece)).find(Result::is_err);
        assert_eq!(fed, Some(Err(End::Invalid)));
    }
}
