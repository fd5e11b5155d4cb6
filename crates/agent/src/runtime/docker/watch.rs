//! Watches containers and restarts them.

use base::Instant;
use std::time::Duration;

use bollard::query_parameters::WaitContainerOptions;
use futures_util::StreamExt;
use model::agent::{Observed, ReplicaId};
use model::deployment::Reason;

use super::inspect::State;
use super::{Docker, Options};
use crate::reason;

/// A container that ran this long has recovered: the backoff starts over.
const BACKOFF_RESET: Duration = Duration::from_mins(1);
/// Pause before another request to an engine that did not respond.
const RETRY: Duration = Duration::from_secs(1);

/// Number of restarts of a container, and its backoff.
#[derive(Debug, Clone)]
pub(super) struct Restarts {
    count: u32,
    /// The backoff that was reported last.
    wait: Duration,
    next: Duration,
    /// Time of the last start.
    since: Instant,
}

impl Restarts {
    pub(super) fn new(options: &Options) -> Self {
        let first = options.restart_backoff;
        Self { count: 0, wait: first, next: first, since: base::monotonic() }
    }

    /// Records an exit. Returns the backoff and the number of the restart.
    fn record_exit(&mut self, options: &Options) -> (Duration, u32) {
        if self.since.elapsed() >= BACKOFF_RESET {
            self.next = options.restart_backoff;
        }
        self.wait = self.next;
        self.next = (self.wait * 2).min(options.max_restart_backoff);
        self.count = self.count.saturating_add(1);
        (self.wait, self.count)
    }
}

impl Docker {
    /// Returns when the observed state of a replica differs from `last`.
    pub(super) async fn watch(&self, id: ReplicaId, last: &Observed) -> Observed {
        let name = self.container_name(id);
        loop {
            let found = match self.find(&name).await {
                Ok(Some(found)) => found,
                Ok(None) => {
                    let message = "removed by a third party".to_owned();
                    return Observed::Failed { reason: Reason::ContainerLost { message } };
                }
                Err(error) => {
                    // The container runs regardless of the engine, as far as is known.
                    tracing::warn!(replica = %id, %error, "inspecting container failed, retrying");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            let (code, reason) = match found.state {
                State::Ended { code, ref reason } => (code, reason.clone()),
                State::Running { endpoints } => {
                    let now = Observed::Running { endpoints };
                    if now != *last {
                        return now;
                    }
                    self.until_exited(&name).await;
                    continue;
                }
                State::Created => {
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            if !found.is_restarted(code) {
                let failed = Observed::Failed { reason };
                return if code == 0 { Observed::Completed } else { failed };
            }
            if !matches!(last, Observed::Restarting { .. }) {
                return self.restarting(id, reason);
            }
            if let Err(error) = self.restart(id, &name).await {
                return self.restarting(id, self.not_started(&error, None));
            }
        }
    }

    /// Records an exit and returns the backoff before the restart.
    fn restarting(&self, id: ReplicaId, exit: Reason) -> Observed {
        let mut all = self.restarts();
        let restarts = all.entry(id).or_insert_with(|| Restarts::new(&self.options));
        let (wait, count) = restarts.record_exit(&self.options);
        Observed::Restarting { reason: reason::restarting(exit, wait, count) }
    }

    async fn restart(&self, id: ReplicaId, name: &str) -> Result<(), bollard::errors::Error> {
        let wait = self.restarts().get(&id).map(|restarts| restarts.wait);
        tokio::time::sleep(wait.unwrap_or(self.options.restart_backoff)).await;
        self.run(name).await?;
        if let Some(restarts) = self.restarts().get_mut(&id) {
            restarts.since = base::monotonic();
        }
        Ok(())
    }

    async fn until_exited(&self, name: &str) {
        let options = WaitContainerOptions { condition: "not-running".to_owned() };
        let mut ends = std::pin::pin!(self.api.wait_container(name, Some(options)));
        // The caller inspects the container again, whatever the result.
        let _ = ends.next().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_maximum() {
        let options = Options {
            restart_backoff: Duration::from_secs(1),
            max_restart_backoff: Duration::from_secs(5),
            ..Options::new("x")
        };
        let mut restarts = Restarts::new(&options);
        let mut waits = Vec::new();
        for _ in 0..5 {
            waits.push(restarts.record_exit(&options).0.as_secs());
        }
        assert_eq!((waits, restarts.count), (vec![1, 2, 4, 5, 5], 5));
    }
}
