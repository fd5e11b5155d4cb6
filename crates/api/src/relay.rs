//! Relay for the logs of remote replicas: requested here, delivered by the cluster's agent.
//!
//! Agents call the server, never the other way round. A log request waits here until the agent
//! fetches it, and the lines that the agent sends are passed on to the client. Nothing is stored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use model::log::{LogLine, LogsFrom};
use model::{ClusterId, ReplicaId};
use tokio::sync::{mpsc, watch};
use wire::agent::LogRequest;

use crate::logs::Lines;

/// Time within which an agent must answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of buffered chunks per request.
const BUFFERED_CHUNKS: usize = 4;
/// Maximum number of open requests per cluster.
const MAX_REQUESTS: usize = 100;

/// An open log request and the channel to its client.
struct OpenRequest {
    request: LogRequest,
    cluster: ClusterId,
    is_fetched: bool,
    reply: mpsc::Sender<Vec<LogLine>>,
}

/// The open log requests.
#[derive(Clone, Default)]
pub(crate) struct Relay(Arc<Inner>);

#[derive(Default)]
struct Inner {
    open: Mutex<HashMap<u32, OpenRequest>>,
    changed: watch::Sender<u32>,
}

impl Relay {
    fn open(&self) -> MutexGuard<'_, HashMap<u32, OpenRequest>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a log from a cluster's agent. Returns the lines, or the reason why there are none.
    pub(crate) async fn request(
        &self,
        cluster: ClusterId,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> Result<Lines, String> {
        let (reply, mut parts) = mpsc::channel(BUFFERED_CHUNKS);
        let id = self.insert(cluster, replica, from, follow, reply)?;
        let guard = RequestGuard { relay: self.clone(), id };
        let first = match tokio::time::timeout(ANSWER_TIMEOUT, parts.recv()).await {
            Ok(first) => first.unwrap_or_default(),
            Err(_) => {
                return Err("The cluster's agent did not answer: it may be disconnected or \
                          connected to another server. Try again."
                    .to_owned());
            }
        };
        let rest = stream::unfold((parts, guard), async |(mut parts, guard)| {
            Some((parts.recv().await?, (parts, guard)))
        });
        Ok(stream::once(async { first }).chain(rest).flat_map(stream::iter).boxed())
    }

    fn insert(
        &self,
        cluster: ClusterId,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
        reply: mpsc::Sender<Vec<LogLine>>,
    ) -> Result<u32, String> {
        let mut open = self.open();
        if open.values().filter(|other| other.cluster == cluster).count() >= MAX_REQUESTS {
            return Err(format!(
                "Too many log requests: {MAX_REQUESTS} are open for the cluster already."
            ));
        }
        let mut id = 0;
        self.0.changed.send_modify(|last| {
            *last = last.wrapping_add(1);
            id = *last;
        });
        let request = LogRequest { id, replica: replica.into(), from, follow };
        open.insert(id, OpenRequest { request, cluster, is_fetched: false, reply });
        Ok(id)
    }

    /// Waits for requests to a cluster that its agent has not fetched yet, and returns them.
    pub(crate) async fn fetch(&self, cluster: ClusterId, wait: Duration) -> Vec<LogRequest> {
        let mut changed = self.0.changed.subscribe();
        let some = async {
            loop {
                changed.mark_unchanged();
                let found = self.fetch_now(cluster);
                if !found.is_empty() || changed.changed().await.is_err() {
                    return found;
                }
            }
        };
        tokio::time::timeout(wait, some).await.unwrap_or_default()
    }

    fn fetch_now(&self, cluster: ClusterId) -> Vec<LogRequest> {
        let mut open = self.open();
        let own = open.values_mut().filter(|open| open.cluster == cluster && !open.is_fetched);
        own.map(|open| {
            open.is_fetched = true;
            open.request.clone()
        })
        .collect()
    }

    /// Passes a chunk on to the client. Returns whether the client is still reading.
    pub(crate) async fn reply(
        &self,
        cluster: ClusterId,
        id: u32,
        lines: Vec<LogLine>,
        is_end: bool,
    ) -> bool {
        let found = self
            .open()
            .get(&id)
            .filter(|open| open.cluster == cluster)
            .map(|open| open.reply.clone());
        let Some(reply) = found else { return false };
        let is_reading = reply.send(lines).await.is_ok();
        if is_end || !is_reading {
            self.open().remove(&id);
        }
        is_reading && !is_end
    }
}

/// Removes the request when the client stops reading.
struct RequestGuard {
    relay: Relay,
    id: u32,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.relay.open().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use model::log::{Cursor, Source};
    use model::{DeploymentId, Time, Xid};

    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine { at: Time(1), source: Source::Stdout, text: text.into(), next: Cursor::default() }
    }

    fn names() -> (ClusterId, ClusterId, ReplicaId) {
        let xid = |n| Xid::new(1, [0; 5], n);
        let replica = ReplicaId { deployment: DeploymentId(xid(3)), number: 0 };
        (ClusterId(xid(1)), ClusterId(xid(2)), replica)
    }

    #[tokio::test(start_paused = true)]
    async fn agent_answers_only_requests_to_its_own_cluster() {
        let (relay, (own, other, replica)) = (Relay::default(), names());
        let client = base::task::spawn("client", {
            let relay = relay.clone();
            async move { relay.request(own, replica, LogsFrom::Start, true).await }
        });
        assert!(relay.fetch(other, Duration::from_secs(1)).await.is_empty());
        let requests = relay.fetch(own, Duration::from_secs(1)).await;
        assert_eq!((requests.len(), requests[0].replica), (1, replica.into()));
        assert!(
            relay.fetch(own, Duration::from_secs(1)).await.is_empty(),
            "requests are fetched once"
        );
        assert!(!relay.reply(other, requests[0].id, vec![line("forged")], false).await);
        assert!(relay.reply(own, requests[0].id, vec![line("one")], false).await);
        let mut lines = client.await.unwrap().unwrap();
        assert_eq!(lines.next().await.unwrap().text, "one");
        relay.reply(own, requests[0].id, vec![line("two")], true).await;
        assert_eq!(lines.next().await.unwrap().text, "two");
        assert!(lines.next().await.is_none(), "the agent ended the log");
    }

    #[tokio::test(start_paused = true)]
    async fn disconnected_client_stops_the_agent() {
        let (relay, (own, _, replica)) = (Relay::default(), names());
        let client = base::task::spawn("client", {
            let relay = relay.clone();
            async move { relay.request(own, replica, LogsFrom::Start, true).await }
        });
        let requests = relay.fetch(own, Duration::from_secs(1)).await;
        assert!(relay.reply(own, requests[0].id, Vec::new(), false).await);
        drop(client.await.unwrap().unwrap());
        assert!(!relay.reply(own, requests[0].id, vec![line("more")], false).await);
        assert!(relay.open().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn unresponsive_agent_is_reported() {
        let (relay, (own, _, replica)) = (Relay::default(), names());
        let why = relay.request(own, replica, LogsFrom::Start, false).await.err().unwrap();
        assert!(why.contains("did not answer"), "{why}");
        assert!(relay.open().is_empty());
    }
}
