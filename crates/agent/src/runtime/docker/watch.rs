//! Sees how containers are doing, and starts those again that shall be.

use base::Instant;
use std::time::Duration;

use bollard::query_parameters::WaitContainerOptions;
use futures_util::StreamExt;
use model::agent::{Observed, ReplicaId};
use model::deployment::Reason;

use super::found::State;
use super::{Docker, Options};
use crate::reason;

/// A container that ran this long has recovered: the next wait is short again.
const RECOVERED: Duration = Duration::from_mins(1);
/// How long to wait before asking an engine again that did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// How often a container was started again, and how long it waits the next time.
#[derive(Debug, Clone)]
pub(super) struct Restarts {
    count: u32,
    /// How long the wait is that was promised last.
    wait: Duration,
    next: Duration,
    /// Since when it runs.
    since: Instant,
}

impl Restarts {
    pub(super) fn new(options: &Options) -> Self {
        let first = options.restart_first;
        Self { count: 0, wait: first, next: first, since: base::monotonic() }
    }

    /// It ended: how long to wait, and for which restart.
    fn ended(&mut self, options: &Options) -> (Duration, u32) {
        if self.since.elapsed() >= RECOVERED {
            self.next = options.restart_first;
        }
        self.wait = self.next;
        self.next = (self.wait * 2).min(options.restart_most);
        self.count = self.count.saturating_add(1);
        (self.wait, self.count)
    }
}

impl Docker {
    /// Returns when a replica is doing differently than `seen`.
    pub(super) async fn watch(&self, id: ReplicaId, seen: &Observed) -> Observed {
        let name = self.container_name(id);
        loop {
            let found = match self.find(&name).await {
                Ok(Some(found)) => found,
                Ok(None) => {
                    let message = "it was removed by someone else".to_owned();
                    return Observed::Failed { reason: Reason::ContainerLost { message } };
                }
                Err(error) => {
                    // It runs on whether the engine answers or not, as far as anyone knows.
                    tracing::warn!(replica = %id, %error, "asking again");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            let (code, reason) = match found.state {
                State::Ended { code, ref reason } => (code, reason.clone()),
                State::Running { endpoints } => {
                    let now = Observed::Running { endpoints };
                    if now != *seen {
                        return now;
                    }
                    self.until_it_ends(&name).await;
                    continue;
                }
                State::Created => {
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            if !found.again(code) {
                let failed = Observed::Failed { reason };
                return if code == 0 { Observed::Completed } else { failed };
            }
            if !matches!(seen, Observed::Restarting { .. }) {
                return self.promise(id, reason);
            }
            if let Err(error) = self.start_again(id, &name).await {
                return self.promise(id, self.not_started(&error, None));
            }
        }
    }

    /// Says that it is started again, and when.
    fn promise(&self, id: ReplicaId, ended: Reason) -> Observed {
        let mut all = self.restarts();
        let restarts = all.entry(id).or_insert_with(|| Restarts::new(&self.options));
        let (wait, count) = restarts.ended(&self.options);
        Observed::Restarting { reason: reason::restarting(ended, wait, count) }
    }

    async fn start_again(&self, id: ReplicaId, name: &str) -> Result<(), bollard::errors::Error> {
        let wait = self.restarts().get(&id).map(|restarts| restarts.wait);
        tokio::time::sleep(wait.unwrap_or(self.options.restart_first)).await;
        self.run(name).await?;
        if let Some(restarts) = self.restarts().get_mut(&id) {
            restarts.since = base::monotonic();
        }
        Ok(())
    }

    async fn until_it_ends(&self, name: &str) {
        let options = WaitContainerOptions { condition: "not-running".to_owned() };
        let mut ends = std::pin::pin!(self.api.wait_container(name, Some(options)));
        // However it ended, or whatever kept us from hearing it: who waits looks again.
        let _ = ends.next().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most() {
        let options = Options {
            restart_first: Duration::from_secs(1),
            restart_most: Duration::from_secs(5),
            ..Options::new("x")
        };
        let mut restarts = Restarts::new(&options);
        let mut waits = Vec::new();
        for _ in 0..5 {
            waits.push(restarts.ended(&options).0.as_secs());
        }
        assert_eq!((waits, restarts.count), (vec![1, 2, 4, 5, 5], 5));
    }
}
