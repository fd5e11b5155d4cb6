//! What a guard promises, with time that stands still.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures_util::future::{join_all, ready};
use port::{Answer, Dns};
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn options() -> Options {
    Options {
        attempts: 3,
        first_delay: Duration::from_millis(100),
        longest_delay: Duration::from_millis(150),
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

/// Asks through the guard; how often the system was asked, and what came out.
async fn ask(guard: &Guard, answer: Result<(), Fault>) -> (u32, Result<(), Fault>) {
    let asked = Cell::new(0);
    let result = guard.call(|| {
        asked.set(asked.get() + 1);
        ready(answer.clone())
    });
    let result = result.await;
    (asked.get(), result)
}

async fn opened() -> Guard {
    let guard = guard();
    ask(&guard, down()).await.1.unwrap_err();
    ask(&guard, down()).await.1.unwrap_err();
    assert_eq!(guard.snapshot().state, State::Open);
    guard
}

#[tokio::test(start_paused = true)]
async fn what_is_unavailable_is_tried_again_with_growing_bounded_waits() {
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
async fn a_refusal_is_passed_on_at_once_and_opens_nothing() {
    let guard = guard();
    let refusal = Err(Fault::Refused("no such zone".into()));
    for _ in 0..10 {
        assert_eq!(ask(&guard, refusal.clone()).await, (1, refusal.clone()));
    }
    assert_eq!(guard.health(), Health::Up);
    assert_eq!(guard.snapshot().state, State::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_given_up() {
    let guard = guard();
    let began = base::monotonic();
    let result: Result<(), _> = guard.call(std::future::pending).await;
    let reason = "The directory did not answer within 1s".to_owned();
    assert_eq!(result, Err(Fault::Unavailable(reason.clone())));
    assert!(began.elapsed() >= 3 * SECOND && began.elapsed() < 4 * SECOND);
    assert_eq!(guard.health(), Health::Down { reason });
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_makes_no_calls_and_says_why() {
    let guard = opened().await;
    let before = guard.snapshot();
    for _ in 0..100 {
        let (asked, result) = ask(&guard, Ok(())).await;
        let said = "The directory is not asked again before 10s have passed: it is down";
        assert_eq!((asked, result), (0, Err(Fault::Unavailable(said.into()))));
    }
    let after = guard.snapshot();
    assert_eq!(after, Snapshot { calls: before.calls + 100, ..before });
    assert_eq!(guard.health(), Health::Down { reason: "it is down".into() });
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_callers_one_sees_how_it_is_and_a_success_opens_the_way() {
    let guard = opened().await;
    sleep(10 * SECOND).await;
    assert_eq!(guard.snapshot().state, State::HalfOpen);
    let asked = Cell::new(0);
    let calls = (0..100).map(|_| {
        guard.call(|| async {
            asked.set(asked.get() + 1);
            sleep(SECOND / 2).await;
            Ok(())
        })
    });
    let results = join_all(calls).await;
    assert_eq!(asked.get(), 1);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(guard.health(), Health::Up);
    assert_eq!(ask(&guard, Ok(())).await, (1, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_is_not_repeated_and_the_system_is_left_alone_again() {
    let guard = opened().await;
    sleep(10 * SECOND).await;
    assert_eq!(ask(&guard, down()).await.0, 1);
    sleep(9 * SECOND).await;
    assert_eq!(ask(&guard, Ok(())).await.0, 0);
    sleep(SECOND).await;
    assert_eq!(ask(&guard, Ok(())).await, (1, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_nobody_waits_for_leaves_its_place_to_the_next() {
    let guard = opened().await;
    sleep(10 * SECOND).await;
    let forgotten = guard.call(std::future::pending::<Result<(), Fault>>);
    timeout(SECOND / 10, forgotten).await.unwrap_err();
    assert_eq!(ask(&guard, Ok(())).await, (1, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_takes_long_is_not_waited_for() {
    let options = Options { timeout: Duration::MAX, ..options() };
    let guard = Guard::new("It", options, || 0);
    while ask(&guard, down()).await.0 > 0 {}
    sleep(10 * SECOND).await;
    let long = guard.call(|| async {
        sleep(100 * SECOND).await;
        Ok(())
    });
    let others = async {
        sleep(SECOND).await;
        let early = ask(&guard, Ok(())).await.0;
        sleep(9 * SECOND).await;
        (early, ask(&guard, Ok(())).await, ask(&guard, Ok(())).await.0)
    };
    let (long, others) = tokio::join!(long, others);
    assert_eq!((long, others), (Ok(()), (0, (1, Ok(())), 1)));
}

#[tokio::test(start_paused = true)]
async fn retries_that_had_begun_stop_when_the_breaker_opens() {
    let guard = guard();
    let calls = (0..50).map(|_| ask(&guard, down()));
    let asked: u32 = join_all(calls).await.iter().map(|(asked, _)| asked).sum();
    // All make their first two attempts; the third of the second closes the way for the others.
    assert_eq!(asked, 50 + 50 + 2);
    assert_eq!(guard.snapshot().attempts, u64::from(asked));
}

struct Flaky(AtomicUsize);

impl Dns for Flaky {
    fn point<'a>(&'a self, _: &'a str, _: &'a str) -> Answer<'a, ()> {
        Box::pin(ready(match self.0.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => down(),
            _ => Ok(()),
        }))
    }
    fn remove<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
        Box::pin(ready(down()))
    }
    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Option<String>> {
        Box::pin(ready(Ok(Some(name.to_owned()))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_guarded_port_is_retried() {
    let guarded = Guarded::new(Flaky(AtomicUsize::new(0)), Arc::new(guard()));
    guarded.point("a", "b").await.unwrap();
    assert_eq!(guarded.find("a").await, Ok(Some("a".into())));
    assert_eq!(guarded.remove("a").await, down());
    let seen = guarded.guard().snapshot();
    assert_eq!((seen.calls, seen.attempts, seen.failures), (3, 7, 5));
}

/// What happens to a system.
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

/// Takes a step and checks what must hold of it.
async fn check(guard: &Guard, step: &Step) {
    let Step::Call { answers } = step else {
        let Step::Wait { seconds } = step else { unreachable!() };
        return sleep(Duration::from_secs(*seconds)).await;
    };
    let (before, asked) = (guard.snapshot().state, Rc::new(Cell::new(0)));
    let result = guard.call(|| {
        let is_up = answers.get(asked.get()).copied().unwrap_or_default();
        asked.set(asked.get() + 1);
        ready(if is_up { Ok(()) } else { down() })
    });
    let result = result.await;
    let most = [(State::Closed, 3), (State::HalfOpen, 1), (State::Open, 0)];
    let most = most.iter().find(|(state, _)| *state == before).unwrap().1;
    assert!(asked.get() <= most, "{} calls while {before:?}", asked.get());
    assert_eq!(result.is_ok(), answers.iter().take(most).any(|is_up| *is_up));
    assert_eq!(result.is_ok(), guard.health() == Health::Up);
}

proptest! {
    #[test]
    fn never_more_calls_than_its_state_allows(steps in proptest::collection::vec(step(), 1..40), seed: u64) {
        let guard = Guard::new("It", options(), move || seed);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async { for step in &steps { check(&guard, step).await } });
    }
}
