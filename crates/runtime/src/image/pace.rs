//! Minimum speed of downloads: a registry that sends a byte at a time must not occupy a pull slot.

use std::time::Duration;

use base::Instant;
use futures_util::{Stream, StreamExt};

/// Minimum speed of a download.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) min_bytes_per_sec: u64,
    /// Period over which the speed is averaged.
    pub(super) window: Duration,
}

/// Speed of a download in the current period.
pub(super) struct Meter {
    pace: Pace,
    began: Instant,
    bytes: u64,
}

impl Meter {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, began: base::monotonic(), bytes: 0 }
    }

    /// The next item of a download; an error if the download was too slow.
    pub(super) async fn next<T: AsRef<[u8]>, E>(
        &mut self,
        stream: &mut (impl Stream<Item = Result<T, E>> + Unpin),
    ) -> Result<Option<Result<T, E>>, TooSlow> {
        loop {
            let left = self.pace.window.saturating_sub(self.began.elapsed());
            if let Ok(item) = tokio::time::timeout(left, stream.next()).await {
                if let Some(Ok(chunk)) = &item {
                    self.bytes = self.bytes.saturating_add(chunk.as_ref().len() as u64);
                }
                return Ok(item);
            }
            let least = self.pace.min_bytes_per_sec.saturating_mul(self.pace.window.as_secs());
            if self.bytes < least {
                return Err(TooSlow);
            }
            *self = Self::new(self.pace);
        }
    }
}

/// A download was slower than its minimum speed.
pub(super) struct TooSlow;
