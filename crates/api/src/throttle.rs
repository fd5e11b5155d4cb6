//! Throttles password guessing without locking out other users.
//!
//! Failures count per pair of username and address: guessing from one address does not lock out the
//! user at another. Two wider counters catch guessing across names and across addresses; they reset
//! within a minute, and do not apply to an address that has logged in recently. Loopback addresses
//! have no counter across names: a proxy that is not declared has one of them for all its users.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::Time;

use crate::Problem;

/// Consecutive failures before the first delay.
const FREE_TRIES: u32 = 5;
/// Maximum delay.
const MAX_DELAY: Duration = Duration::from_mins(1);
/// Maximum failures per minute of one address over all names, and of one name over all addresses.
const PER_MINUTE: u32 = 100;
/// Time for which an address is trusted after a login.
const TRUSTED_FOR: Duration = Duration::from_hours(24 * 30);
/// Number of entries above which expired ones are dropped.
const MAX_ENTRIES: usize = 100_000;

/// Counts failed logins.
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
    /// Time until which attempts are rejected.
    blocked_until: Time,
    /// Time when the entry expires.
    expires_at: Time,
    /// Time of the pair's last successful login.
    succeeded_at: Option<Time>,
}

impl Throttle {
    /// Fails if the address may not try this name now.
    pub(crate) fn check(&self, name: &str, address: IpAddr, now: Time) -> Result<(), Problem> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = counts.get(&Subject::Pair(name.to_owned(), address));
        let is_trusted =
            pair.and_then(|c| c.succeeded_at).is_some_and(|at| now.since(at) < TRUSTED_FOR);
        let wide_counts = [Subject::Address(address), Subject::Name(name.to_owned())];
        let wide_counts =
            wide_counts.iter().filter(|_| !is_trusted).filter_map(|subject| counts.get(subject));
        let blocked_until = wide_counts.chain(pair).map(|count| count.blocked_until).max();
        match blocked_until.map(|until| until.since(now)).filter(|wait| !wait.is_zero()) {
            None => Ok(()),
            Some(wait) => {
                let secs = wait.as_secs() + 1;
                Err(Problem::too_many(
                    format!("Too many failed login attempts; try again in {secs} s."),
                    secs,
                ))
            }
        }
    }

    /// Records a failed login.
    pub(crate) fn failed(&self, name: &str, address: IpAddr, now: Time) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() > MAX_ENTRIES {
            counts.retain(|_, count| count.expires_at > now);
        }
        let mut add = |subject, delay: fn(u32) -> Option<Duration>| {
            let fresh =
                Count { failures: 0, blocked_until: now, expires_at: now, succeeded_at: None };
            let count = counts.entry(subject).or_insert(fresh);
            if count.expires_at <= now {
                count.failures = 0;
                count.expires_at = now + MAX_DELAY;
            }
            count.failures += 1;
            if let Some(wait) = delay(count.failures) {
                count.blocked_until = now + wait;
                count.expires_at = now + MAX_DELAY + wait;
            }
        };
        add(Subject::Pair(name.to_owned(), address), pair_delay);
        if !address.is_loopback() {
            add(Subject::Address(address), wide_delay);
        }
        add(Subject::Name(name.to_owned()), wide_delay);
    }

    /// Records a successful login.
    pub(crate) fn succeeded(&self, name: &str, address: IpAddr, now: Time) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (expires_at, succeeded_at) = (now + TRUSTED_FOR, Some(now));
        let count = Count { failures: 0, blocked_until: now, expires_at, succeeded_at };
        counts.insert(Subject::Pair(name.to_owned(), address), count);
    }
}

/// Delay that doubles from the sixth consecutive failure on, up to a minute.
fn pair_delay(failures: u32) -> Option<Duration> {
    let over = failures.checked_sub(FREE_TRIES + 1)?;
    Some(Duration::from_secs(1 << over.min(6)).min(MAX_DELAY))
}

fn wide_delay(failures: u32) -> Option<Duration> {
    (failures >= PER_MINUTE).then_some(MAX_DELAY)
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
    fn guessing_is_delayed_per_address_and_name() {
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
    fn guessing_across_names_blocks_an_address_but_not_this_machine() {
        let throttle = Throttle::default();
        for i in 0..PER_MINUTE {
            for address in [HERE, THERE] {
                throttle.failed(&format!("user{i}"), address, at(0));
            }
        }
        assert!(throttle.check("ann", THERE, at(0)).is_err());
        assert!(throttle.check("ann", HERE, at(0)).is_ok());
    }

    #[test]
    fn delay_is_at_most_a_minute() {
        let throttle = Throttle::default();
        for _ in 0..10_000 {
            throttle.failed("ann", HERE, at(0));
        }
        assert!(throttle.check("ann", HERE, at(59)).is_err());
        assert!(throttle.check("ann", HERE, at(61)).is_ok());
    }

    #[test]
    fn distributed_guessing_blocks_a_name_except_at_trusted_addresses() {
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
