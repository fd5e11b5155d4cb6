//! An open log: lines, however the bytes are cut into pieces.

use std::collections::VecDeque;

use reqwest::Response;

use super::call::Call;
use super::error::Error;
use super::http::Api;

/// The longest line that is still taken for one.
const MAX_BYTES: usize = 4 << 20;

/// Why there are no more lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All was said; or the server stops, which looks the same.
    Whole,
    /// The connection broke.
    Broken,
    /// That was no log.
    Foreign,
}

/// An open log.
pub(crate) struct Lines {
    response: Response,
    cut: Cut,
}

impl Lines {
    /// Opens a log.
    pub(crate) async fn open(api: &Api, call: &Call) -> Result<Self, Error> {
        Ok(Self { response: api.lines(call).await?, cut: Cut::default() })
    }

    /// Waits for the next line, and reads it; whatever can't be read is none of a log.
    pub(crate) async fn next<T>(&mut self, read: fn(&[u8]) -> Option<T>) -> Result<T, End> {
        loop {
            if let Some(bytes) = self.cut.next() {
                return read(&bytes).ok_or(End::Foreign);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.cut.feed(&bytes)?,
                // A line without its end comes again, whole, to whoever goes on after the last.
                Ok(None) => return Err(End::Whole),
                Err(_) => return Err(End::Broken),
            }
        }
    }
}

/// Cuts bytes into lines.
#[derive(Debug, Default)]
struct Cut {
    begun: Vec<u8>,
    ready: VecDeque<Vec<u8>>,
}

impl Cut {
    fn feed(&mut self, bytes: &[u8]) -> Result<(), End> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(rest) => {
                    self.begun.extend_from_slice(rest);
                    self.ready.push_back(std::mem::take(&mut self.begun));
                }
                None => self.begun.extend_from_slice(piece),
            }
        }
        if self.begun.len() > MAX_BYTES { Err(End::Foreign) } else { Ok(()) }
    }

    /// The next whole line; empty ones mean nothing.
    fn next(&mut self) -> Option<Vec<u8>> {
        std::iter::from_fn(|| self.ready.pop_front()).find(|line| !line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut cut = Cut::default();
        for piece in pieces {
            cut.feed(piece).unwrap();
        }
        std::iter::from_fn(|| cut.next()).collect()
    }

    #[test]
    fn where_the_bytes_are_cut_makes_no_difference() {
        let text = "{\"text\":\"für\"}\n\nb\nunfinished".as_bytes();
        let want = [b"{\"text\":\"f\xc3\xbcr\"}".to_vec(), b"b".to_vec()];
        for at in 0..text.len() {
            assert_eq!(cut(&[&text[..at], &text[at..]]), want, "cut at {at}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut cut = Cut::default();
        let piece = vec![b'x'; 1 << 16];
        let fed = (0..100).map(|_| cut.feed(&piece)).find(Result::is_err);
        assert_eq!(fed, Some(Err(End::Foreign)));
    }
}
