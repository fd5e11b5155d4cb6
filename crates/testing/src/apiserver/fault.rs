//! Fault injection.

use std::time::Duration;

use super::RecordedRequest;

/// How a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// A failure with that status.
    Status(u16),
    /// 429, with a retry delay in seconds.
    Busy(u32),
    /// 200 with a body that is not JSON.
    Garbage,
    /// The connection is closed without a response.
    Cut,
    /// A delayed response.
    Slow(Duration),
    /// A watch that starts with an error event.
    WatchError(u16),
}

/// Requests that fail.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Only requests with this method.
    pub method: String,
    /// Only requests whose path and query contain this text.
    pub part: String,
    /// Number of requests that fail.
    pub times: usize,
    /// How they fail.
    pub how: FaultKind,
}

impl Fault {
    /// Fails the next `times` requests with that method and `part` in their path.
    pub fn new(method: &str, part: &str, times: usize, how: FaultKind) -> Self {
        Self { method: method.into(), part: part.into(), times, how }
    }

    fn matches(&self, asked: &RecordedRequest) -> bool {
        let query = asked.query.iter().map(|(key, value)| format!("{key}={value}"));
        let line = format!("{}?{}", asked.path, query.collect::<Vec<_>>().join("&"));
        self.times > 0 && self.method == asked.method && line.contains(&self.part)
    }
}

/// The fault of this request, if any.
pub(super) fn next_fault(faults: &mut [Fault], asked: &RecordedRequest) -> Option<FaultKind> {
    let fault = faults.iter_mut().find(|fault| fault.matches(asked))?;
    fault.times -= 1;
    Some(fault.how.clone())
}
