//! Counts the heartbeats of each cluster, so that one agent gone wild does not keep the others out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::{ClusterId, Time};

use crate::Problem;

/// How many a cluster may have in one window.
const MOST: u32 = 50;
const WINDOW: Duration = Duration::from_secs(1);
/// How many clusters are remembered before those of old windows are forgotten.
const MAX_ENTRIES: usize = 10_000;

/// How many heartbeats came from where since when.
#[derive(Default)]
pub(crate) struct Pulse(Mutex<HashMap<ClusterId, (Time, u32)>>);

impl Pulse {
    /// Counts one, or refuses it.
    pub(crate) fn count(&self, of: ClusterId, now: Time) -> Result<(), Problem> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() > MAX_ENTRIES {
            counts.retain(|_, (since, _)| now.since(*since) < WINDOW);
        }
        let (since, count) = counts.entry(of).or_insert((now, 0));
        if now.since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        if *count > MOST {
            let detail = format!("More than {MOST} heartbeats in a second; slow down.");
            return Err(Problem::too_many(detail, 1));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::Xid;

    use super::*;

    #[test]
    fn who_is_too_fast_has_to_wait_and_others_do_not() {
        let pulse = Pulse::default();
        let [wild, calm] = [1, 2].map(|n| ClusterId(Xid::new(n, [0; 5], 0)));
        let now = Time(1_000_000);
        assert!((0..MOST).all(|_| pulse.count(wild, now).is_ok()));
        assert!(pulse.count(wild, now).is_err());
        assert!(pulse.count(calm, now).is_ok());
        assert!(pulse.count(wild, now + WINDOW).is_ok());
    }
}
