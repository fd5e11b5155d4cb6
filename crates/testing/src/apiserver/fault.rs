//! What goes wrong when a test wants it to.

use std::time::Duration;

use super::Asked;

/// How a request goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misbehave {
    /// It is answered with that status, as an apiserver would.
    Status(u16),
    /// 429, with how many seconds to wait.
    Busy(u32),
    /// 200 with something that is no JSON.
    Garbage,
    /// The connection breaks off before there is an answer.
    Cut,
    /// It is answered, after that long.
    Slow(Duration),
    /// A watch begins, and tells of an error with that code at once.
    WatchError(u16),
}

/// Requests that go wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Only those with this method.
    pub method: String,
    /// Only those with this in their path and query.
    pub part: String,
    /// How many of them.
    pub times: usize,
    /// How.
    pub how: Misbehave,
}

impl Fault {
    /// The next `times` requests of that method with `part` in their path go wrong so.
    pub fn new(method: &str, part: &str, times: usize, how: Misbehave) -> Self {
        Self { method: method.into(), part: part.into(), times, how }
    }

    fn is_for(&self, asked: &Asked) -> bool {
        let query = asked.query.iter().map(|(key, value)| format!("{key}={value}"));
        let line = format!("{}?{}", asked.path, query.collect::<Vec<_>>().join("&"));
        self.times > 0 && self.method == asked.method && line.contains(&self.part)
    }
}

/// What shall happen to this request, if not what should.
pub(super) fn take(faults: &mut [Fault], asked: &Asked) -> Option<Misbehave> {
    let fault = faults.iter_mut().find(|fault| fault.is_for(asked))?;
    fault.times -= 1;
    Some(fault.how.clone())
}
