//! Exponential backoff with jitter.

use std::time::Duration;

/// The first delay.
pub const FIRST: Duration = Duration::from_millis(100);
/// The maximum delay.
pub const LONGEST: Duration = Duration::from_mins(5);

/// The delay after `attempts` consecutive failures: between half and all of a doubling time.
///
/// `noise` is any random number; without jitter, simultaneous failures would retry together.
pub fn delay(attempts: u32, noise: u64) -> Duration {
    let full = FIRST.saturating_mul(1u32 << attempts.saturating_sub(1).min(20)).min(LONGEST);
    let half_us = u64::try_from(full.as_micros() / 2).expect("five minutes fit");
    Duration::from_micros(half_us + noise % (half_us + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn delay_grows_within_bounds(attempts in 1u32.., noise: u64) {
            let wait = delay(attempts, noise);
            prop_assert!(wait >= FIRST / 2 && wait <= LONGEST);
            prop_assert!(delay(attempts, 0) <= delay(attempts.saturating_add(1), 0));
        }
    }
}
