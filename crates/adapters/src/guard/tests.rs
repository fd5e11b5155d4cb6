//! Tests of the guard, with paused time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures_util::future::{join_all, ready};
use port::{Dns, PortFuture};
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn options() -> Options {
    Options {
        attempts: 3,
        base_delay: Duration::from_millis(100),
        max_delay: Duration::from_millis(150),
        timeout: SECOND,
        failures_to_open: 2,
        open_for: 10 * SECOND,
    }
}

fn guard() -> Guard {
    Guard::new("The directory", options(), || u64::MAX)
}

fn down() -> Result<(), Fault> {
    Err(Fault::Unavailable("it is down".into()))
}

/// Calls through the guard; returns the number of attempts and the result.
async fn call(guard: &Guard, answer: Result<(), Fault>) -> (u32, Result<(), Fault>) {
    let attempts = Cell::new(0);
    let result = guard.call(|| {
        attempts.set(attempts.get() + 1);
        ready(answer.clone())
    });
    let result = result.await;
    (attempts.get(), result)
}

async fn open_guard() -> Guard {
    let guard = guard();
    call(&guard, down()).await.1.unwrap_err();
    call(&guard, down()).await.1.unwrap_err();
    assert_eq!(guard.snapshot().state, State::Open);
    guard
}

#[tokio::test(start_paused = true)]
async fn unavailable_system_is_retried_with_growing_bounded_delays() {
    let times = RefCell::new(Vec::new());
    let began = base::monotonic();
    let result: Result<(), _> = guard()
        .call(|| {
            times.borrow_mut().push(began.elapsed());
            ready(down())
        })
        .await;
    assert_eq!(result, down());
    let noise = |most_us: u64| Duration::from_micros(u64::MAX % (most_us + 1));
    let times: Vec<_> = times.borrow().windows(2).map(|pair| pair[1].abs_diff(pair[0])).collect();
    assert_eq!(times.len(), 2);
    for (waited, most_us) in times.iter().zip([100_000, 150_000]) {
        let rounding = waited.abs_diff(noise(most_us));
        assert!(rounding <= Duration::from_millis(1), "{waited:?} of at most {most_us} us");
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_is_returned_at_once_and_does_not_open_the_breaker() {
    let guard = guard();
    let refusal = Err(Fault::Refused("no such zone".into()));
    for _ in 0..10 {
        assert_eq!(call(&guard, refusal.clone()).await, (1, refusal.clone()));
    }
    assert_eq!(guard.health(), Health::Up);
    assert_eq!(guard.snapshot().state, State::Closed);
}

#[tokio::test(start_paused = true)]
async fn attempt_times_out() {
    let guard = guard();
    let began = base::monotonic();
    let result: Result<(), _> = guard.call(std::future::pending).await;
    let reason = "The directory did not answer within 1s".to_owned();
    assert_eq!(result, Err(Fault::Unavailable(reason.clone())));
    assert!(began.elapsed() >= 3 * SECOND && began.elapsed() < 4 * SECOND);
    assert_eq!(guard.health(), Health::Down { reason });
}

#[tokio::test(start_paused = true)]
async fn open_breaker_permits_no_calls_and_reports_the_cause() {
    let guard = open_guard().await;
    let before = guard.snapshot();
    for _ in 0..100 {
        let (attempts, result) = call(&guard, Ok(())).await;
        let message = "The directory is unavailable: it is down. Calls resume within 10s";
        assert_eq!((attempts, result), (0, Err(Fault::Unavailable(message.into()))));
    }
    let after = guard.snapshot();
    assert_eq!(after, Snapshot { calls: before.calls + 100, ..before });
    assert_eq!(guard.health(), Health::Down { reason: "it is down".into() });
}

#[tokio::test(start_paused = true)]
async fn one_of_many_callers_probes_and_its_success_closes_the_breaker() {
    let guard = open_guard().await;
    sleep(10 * SECOND).await;
    assert_eq!(guard.snapshot().state, State::HalfOpen);
    let attempts = Cell::new(0);
    let calls = (0..100).map(|_| {
        guard.call(|| async {
            attempts.set(attempts.get() + 1);
            sleep(SECOND / 2).await;
            Ok(())
        })
    });
    let results = join_all(calls).await;
    assert_eq!(attempts.get(), 1);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(guard.health(), Health::Up);
    assert_eq!(call(&guard, Ok(())).await, (1, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn failed_probe_is_not_retried_and_reopens_the_breaker() {
    let guard = open_guard().await;
    sleep(10 * SECOND).await;
    assert_eq!(call(&guard, down()).await.0, 1);
    sleep(9 * SECOND).await;
    assert_eq!(call(&guard, Ok(())).await.0, 0);
    sleep(SECOND).await;
    assert_eq!(call(&guard, Ok(())).await, (1, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn cancelled_probe_leaves_its_place_to_the_next_call() {
    let guard = open_guard().await;
    sleep(10 * SECOND).await;
    let cancelled = guard.call(std::future::pending::<Result<(), Fault>>);
    timeout(SECOND / 10, cancelled).await.unwrap_err();
    assert_eq!(call(&guard, Ok(())).await, (1, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn slow_probe_does_not_block_the_next() {
    let options = Options { timeout: Duration::MAX, ..options() };
    let guard = Guard::new("It", options, || 0);
    while call(&guard, down()).await.0 > 0 {}
    sleep(10 * SECOND).await;
    let long = guard.call(|| async {
        sleep(100 * SECOND).await;
        Ok(())
    });
    let others = async {
        sleep(SECOND).await;
        let early = call(&guard, Ok(())).await.0;
        sleep(9 * SECOND).await;
        (early, call(&guard, Ok(())).await, call(&guard, Ok(())).await.0)
    };
    let (long, others) = tokio::join!(long, others);
    assert_eq!((long, others), (Ok(()), (0, (1, Ok(())), 1)));
}

#[tokio::test(start_paused = true)]
async fn running_retries_stop_when_the_breaker_opens() {
    let guard = guard();
    let calls = (0..50).map(|_| call(&guard, down()));
    let attempts: u32 = join_all(calls).await.iter().map(|(attempts, _)| attempts).sum();
    // All make two attempts; the third one of the second call opens the breaker for the others.
    assert_eq!(attempts, 50 + 50 + 2);
    assert_eq!(guard.snapshot().attempts, u64::from(attempts));
}

struct Flaky(AtomicUsize);

impl Dns for Flaky {
    fn set_cname<'a>(&'a self, _: &'a str, _: &'a str) -> PortFuture<'a, ()> {
        Box::pin(ready(match self.0.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => down(),
            _ => Ok(()),
        }))
    }
    fn delete_cname<'a>(&'a self, _: &'a str) -> PortFuture<'a, ()> {
        Box::pin(ready(down()))
    }
    fn get_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<String>> {
        Box::pin(ready(Ok(Some(name.to_owned()))))
    }
}

#[tokio::test(start_paused = true)]
async fn guarded_port_is_retried() {
    let guarded = Guarded::new(Flaky(AtomicUsize::new(0)), Arc::new(guard()));
    guarded.set_cname("a", "b").await.unwrap();
    assert_eq!(guarded.get_cname("a").await, Ok(Some("a".into())));
    assert_eq!(guarded.delete_cname("a").await, down());
    let counts = guarded.guard().snapshot();
    assert_eq!((counts.calls, counts.attempts, counts.failures), (3, 7, 5));
}

/// An event in the life of a guard.
#[derive(Debug, Clone)]
enum Step {
    Call { answers: Vec<bool> },
    Wait { seconds: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        proptest::collection::vec(any::<bool>(), 1..6).prop_map(|answers| Step::Call { answers }),
        (0..15u64).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// Performs a step and checks the invariants.
async fn check(guard: &Guard, step: &Step) {
    let Step::Call { answers } = step else {
        let Step::Wait { seconds } = step else { unreachable!() };
        return sleep(Duration::from_secs(*seconds)).await;
    };
    let (before, attempts) = (guard.snapshot().state, Rc::new(Cell::new(0)));
    let result = guard.call(|| {
        let is_up = answers.get(attempts.get()).copied().unwrap_or_default();
        attempts.set(attempts.get() + 1);
        ready(if is_up { Ok(()) } else { down() })
    });
    let result = result.await;
    let most = [(State::Closed, 3), (State::HalfOpen, 1), (State::Open, 0)];
    let most = most.iter().find(|(state, _)| *state == before).unwrap().1;
    assert!(attempts.get() <= most, "{} calls while {before:?}", attempts.get());
    assert_eq!(result.is_ok(), answers.iter().take(most).any(|is_up| *is_up));
    assert_eq!(result.is_ok(), guard.health() == Health::Up);
}

proptest! {
    #[test]
    fn attempts_never_exceed_what_the_state_permits(steps in proptest::collection::vec(step(), 1..40), seed: u64) {
        let guard = Guard::new("It", options(), move || seed);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async { for step in &steps { check(&guard, step).await } });
    }
}
