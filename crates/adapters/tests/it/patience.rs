//! Guards and timeouts for tests.

use base::{Clock as _, SystemClock};
use std::sync::Arc;
use std::time::Duration;

use adapters::guard::{Guard, Options};
use model::Time;
use port::Fault;

/// How long a recovery may take.
const LIMIT: Duration = Duration::from_mins(2);

/// The timeout of a call to a real system on a loaded machine.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// A guard with short delays.
pub(crate) fn guard(name: &str, timeout: Duration) -> Arc<Guard> {
    let options = Options {
        attempts: 2,
        base_delay: Duration::from_millis(10),
        max_delay: Duration::from_millis(20),
        timeout,
        failures_to_open: 2,
        open_for: Duration::from_millis(200),
    };
    Arc::new(Guard::new(name, options, || 7))
}

/// The current time, as real servers need it.
pub(crate) fn now() -> Time {
    SystemClock.now()
}

/// Calls until it succeeds: a failed system recovers.
pub(crate) async fn eventually<T>(mut call: impl AsyncFnMut() -> Result<T, Fault>) -> T {
    let began = base::monotonic();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(Fault::Unavailable(reason)) => assert!(began.elapsed() < LIMIT, "still: {reason}"),
            Err(other) => panic!("refused: {other}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Calls until the circuit breaker opens; returns all messages.
pub(crate) async fn until_open<T>(mut call: impl AsyncFnMut() -> Result<T, Fault>) -> Vec<String> {
    let mut messages = Vec::new();
    while !messages.last().is_some_and(|last: &String| last.contains("Calls resume within")) {
        assert!(messages.len() < 10, "the breaker does not open: {messages:?}");
        match call().await {
            Err(Fault::Unavailable(reason)) => messages.push(reason),
            Err(other) => panic!("refused: {other}"),
            Ok(_) => panic!("it works"),
        }
    }
    messages
}
