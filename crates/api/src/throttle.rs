//! Slows down guessing of passwords without locking others out.
//!
//! Failures count against the pair of name and address: who guesses a name from one address does
//! not keep its owner out at another. Two wider counts catch guessing across names and across
//! addresses; they end within a minute, and an address that has signed in lately is spared.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::Time;

use crate::Problem;

/// Failures in a row before the first wait.
const FREE_TRIES: u32 = 5;
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);
/// How many failures in a minute one address may have over all names, one name over all addresses.
const PER_MINUTE: u32 = 100;
/// How long an address counts as the user's own after a sign-in.
const KNOWN_FOR: Duration = Duration::from_hours(24 * 30);
/// How many entries are kept at most before old ones are dropped.
const MAX_ENTRIES: usize = 100_000;

/// Counts failures.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<HashMap<Subject, Count>>);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Subject {
    Pair(String, IpAddr),
    Address(IpAddr),
    Name(String),
}

#[derive(Clone, Copy)]
struct Count {
    failures: u32,
    /// Until when nothing is tried.
    closed_until: Time,
    /// When the entry means nothing any more.
    forget_at: Time,
    /// When the pair last signed in.
    succeeded_at: Option<Time>,
}

impl Throttle {
    /// May somebody at that address try that name now?
    pub(crate) fn check(&self, name: &str, address: IpAddr, now: Time) -> Result<(), Problem> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = counts.get(&Subject::Pair(name.to_owned(), address));
        let is_known =
            pair.and_then(|c| c.succeeded_at).is_some_and(|at| now.since(at) < KNOWN_FOR);
        let wide = [Subject::Address(address), Subject::Name(name.to_owned())];
        let wide = wide.iter().filter(|_| !is_known).filter_map(|subject| counts.get(subject));
        let closed_until = wide.chain(pair).map(|count| count.closed_until).max();
        match closed_until.map(|until| until.since(now)).filter(|wait| !wait.is_zero()) {
            None => Ok(()),
            Some(wait) => {
                let secs = wait.as_secs() + 1;
                Err(Problem::too_many(
                    format!("Too many failed sign-ins; try again in {secs} s."),
                    secs,
                ))
            }
        }
    }

    /// A wrong password or an unknown name.
    pub(crate) fn failed(&self, name: &str, address: IpAddr, now: Time) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() > MAX_ENTRIES {
            counts.retain(|_, count| count.forget_at > now);
        }
        let mut add = |subject, close: fn(u32) -> Option<Duration>| {
            let fresh =
                Count { failures: 0, closed_until: now, forget_at: now, succeeded_at: None };
            let count = counts.entry(subject).or_insert(fresh);
            if count.forget_at <= now {
                count.failures = 0;
                count.forget_at = now + LONGEST;
            }
            count.failures += 1;
            if let Some(wait) = close(count.failures) {
                count.closed_until = now + wait;
                count.forget_at = now + LONGEST + wait;
            }
        };
        add(Subject::Pair(name.to_owned(), address), pair_wait);
        add(Subject::Address(address), wide_wait);
        add(Subject::Name(name.to_owned()), wide_wait);
    }

    /// The right password.
    pub(crate) fn succeeded(&self, name: &str, address: IpAddr, now: Time) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (forget_at, succeeded_at) = (now + KNOWN_FOR, Some(now));
        let count = Count { failures: 0, closed_until: now, forget_at, succeeded_at };
        counts.insert(Subject::Pair(name.to_owned(), address), count);
    }
}

/// Doubling from the sixth failure in a row on, a minute at most.
fn pair_wait(failures: u32) -> Option<Duration> {
    let over = failures.checked_sub(FREE_TRIES + 1)?;
    Some(Duration::from_secs(1 << over.min(6)).min(LONGEST))
}

fn wide_wait(failures: u32) -> Option<Duration> {
    (failures >= PER_MINUTE).then_some(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));

    fn at(secs: i64) -> Time {
        Time(1_000_000_000_000 + secs * 1_000_000)
    }

    #[test]
    fn guessing_slows_down_but_its_owner_elsewhere_gets_in() {
        let throttle = Throttle::default();
        for _ in 0..=FREE_TRIES {
            assert!(throttle.check("ann", HERE, at(0)).is_ok());
            throttle.failed("ann", HERE, at(0));
        }
        assert!(throttle.check("ann", HERE, at(0)).is_err());
        assert!(throttle.check("ann", THERE, at(0)).is_ok());
        assert!(throttle.check("bob", HERE, at(0)).is_ok());
    }

    #[test]
    fn no_wait_is_longer_than_a_minute() {
        let throttle = Throttle::default();
        for _ in 0..10_000 {
            throttle.failed("ann", HERE, at(0));
        }
        assert!(throttle.check("ann", HERE, at(59)).is_err());
        assert!(throttle.check("ann", HERE, at(61)).is_ok());
    }

    #[test]
    fn many_addresses_close_a_name_but_not_for_who_signed_in_before() {
        let throttle = Throttle::default();
        throttle.succeeded("ann", HERE, at(0));
        for i in 0..PER_MINUTE {
            let from = IpAddr::V4(std::net::Ipv4Addr::from(0x0a00_0000 + i));
            throttle.failed("ann", from, at(1));
        }
        assert!(throttle.check("ann", THERE, at(1)).is_err());
        assert!(throttle.check("ann", HERE, at(1)).is_ok());
    }
}
