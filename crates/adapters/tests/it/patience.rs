//! Guards and time as tests need them.

use base::{Clock as _, SystemClock};
use std::sync::Arc;
use std::time::Duration;

use adapters::guard::{Guard, Options};
use model::Time;
use port::Fault;

/// How long something may take to come right again.
const LIMIT: Duration = Duration::from_mins(2);

/// How long a call of a real system may take, on a machine that has much else to do.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// A guard that gives up soon.
pub(crate) fn guard(name: &str, timeout: Duration) -> Arc<Guard> {
    let options = Options {
        attempts: 2,
        first_delay: Duration::from_millis(10),
        longest_delay: Duration::from_millis(20),
        timeout,
        failures_to_open: 2,
        open_for: Duration::from_millis(200),
    };
    Arc::new(Guard::new(name, options, || 7))
}

/// The time now: real servers have the real one.
pub(crate) fn now() -> Time {
    SystemClock.now()
}

/// Asks until the answer is good: what was down comes back by itself.
pub(crate) async fn eventually<T>(mut ask: impl AsyncFnMut() -> Result<T, Fault>) -> T {
    let began = base::monotonic();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(Fault::Unavailable(reason)) => assert!(began.elapsed() < LIMIT, "still: {reason}"),
            Err(other) => panic!("refused: {other}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asks until the guard leaves the system alone; all that it said.
pub(crate) async fn until_open<T>(mut ask: impl AsyncFnMut() -> Result<T, Fault>) -> Vec<String> {
    let mut said = Vec::new();
    while !said.last().is_some_and(|last: &String| last.contains("is not asked again before")) {
        assert!(said.len() < 10, "the breaker does not open: {said:?}");
        match ask().await {
            Err(Fault::Unavailable(reason)) => said.push(reason),
            Err(other) => panic!("refused: {other}"),
            Ok(_) => panic!("it works"),
        }
    }
    said
}
