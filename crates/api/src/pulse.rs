//! Rate limit for the heartbeats of each cluster: one misbehaving agent does not affect others.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::{ClusterId, Time};

use crate::Problem;

/// Maximum number of heartbeats per cluster and window.
const MAX_PER_WINDOW: u32 = 50;
const WINDOW: Duration = Duration::from_secs(1);
/// Number of clusters above which expired windows are dropped.
const MAX_ENTRIES: usize = 10_000;

/// Start of the window and number of heartbeats by cluster.
#[derive(Default)]
pub(crate) struct Pulse(Mutex<HashMap<ClusterId, (Time, u32)>>);

impl Pulse {
    /// Counts a heartbeat, or rejects it.
    pub(crate) fn count(&self, cluster: ClusterId, now: Time) -> Result<(), Problem> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() > MAX_ENTRIES {
            counts.retain(|_, (since, _)| now.since(*since) < WINDOW);
        }
        let (since, count) = counts.entry(cluster).or_insert((now, 0));
        if now.since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        if *count > MAX_PER_WINDOW {
            let detail = format!("More than {MAX_PER_WINDOW} heartbeats per second; slow down.");
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
    fn excessive_heartbeats_are_rejected_per_cluster() {
        let pulse = Pulse::default();
        let [noisy, calm] = [1, 2].map(|n| ClusterId(Xid::new(n, [0; 5], 0)));
        let now = Time(1_000_000);
        assert!((0..MAX_PER_WINDOW).all(|_| pulse.count(noisy, now).is_ok()));
        assert!(pulse.count(noisy, now).is_err());
        assert!(pulse.count(calm, now).is_ok());
        assert!(pulse.count(noisy, now + WINDOW).is_ok());
    }
}
