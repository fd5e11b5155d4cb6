//! Logs of replicas on other machines: asked here, told by their cluster's agent.
//!
//! Agents call the server, never the other way round. So a question waits here until the agent comes
//! for it, and what the agent then tells is passed on to who asked. Nothing of it is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use model::log::{LogLine, LogsFrom};
use model::{ClusterId, ReplicaId};
use tokio::sync::{mpsc, watch};
use wire::agent::LogAsk;

use crate::logs::Lines;

/// How long an agent has to come for a question.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many parts of an answer wait to be read.
const AHEAD: usize = 4;
/// How many questions to one cluster are open at once.
const MOST: usize = 100;

/// A question and where its answer goes.
struct Open {
    ask: LogAsk,
    cluster: ClusterId,
    is_taken: bool,
    answer: mpsc::Sender<Vec<LogLine>>,
}

/// The questions that are open.
#[derive(Clone, Default)]
pub(crate) struct Relay(Arc<Inner>);

#[derive(Default)]
struct Inner {
    open: Mutex<HashMap<u32, Open>>,
    changed: watch::Sender<u32>,
}

impl Relay {
    fn open(&self) -> MutexGuard<'_, HashMap<u32, Open>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a cluster's agent; the lines that it tells, or why there are none, as a sentence.
    pub(crate) async fn ask(
        &self,
        cluster: ClusterId,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
    ) -> Result<Lines, String> {
        let (answer, mut parts) = mpsc::channel(AHEAD);
        let id = self.put(cluster, replica, from, follow, answer)?;
        let question = Question { relay: self.clone(), id };
        let first = match tokio::time::timeout(PATIENCE, parts.recv()).await {
            Ok(first) => first.unwrap_or_default(),
            Err(_) => {
                return Err("The agent of its cluster did not answer: it may be cut off, or \
                            connected to another server. Try again."
                    .to_owned());
            }
        };
        let rest = stream::unfold((parts, question), async |(mut parts, question)| {
            Some((parts.recv().await?, (parts, question)))
        });
        Ok(stream::once(async { first }).chain(rest).flat_map(stream::iter).boxed())
    }

    fn put(
        &self,
        cluster: ClusterId,
        replica: ReplicaId,
        from: LogsFrom,
        follow: bool,
        answer: mpsc::Sender<Vec<LogLine>>,
    ) -> Result<u32, String> {
        let mut open = self.open();
        if open.values().filter(|other| other.cluster == cluster).count() >= MOST {
            return Err(format!("{MOST} logs of its cluster are being read already."));
        }
        let mut id = 0;
        self.0.changed.send_modify(|last| {
            *last = last.wrapping_add(1);
            id = *last;
        });
        let ask = LogAsk { id, replica: replica.into(), from, follow };
        open.insert(id, Open { ask, cluster, is_taken: false, answer });
        Ok(id)
    }

    /// The questions to a cluster that its agent has not taken yet, as soon as there are some.
    pub(crate) async fn take(&self, cluster: ClusterId, wait: Duration) -> Vec<LogAsk> {
        let mut changed = self.0.changed.subscribe();
        let some = async {
            loop {
                changed.mark_unchanged();
                let found = self.take_now(cluster);
                if !found.is_empty() || changed.changed().await.is_err() {
                    return found;
                }
            }
        };
        tokio::time::timeout(wait, some).await.unwrap_or_default()
    }

    fn take_now(&self, cluster: ClusterId) -> Vec<LogAsk> {
        let mut open = self.open();
        let own = open.values_mut().filter(|open| open.cluster == cluster && !open.is_taken);
        own.map(|open| {
            open.is_taken = true;
            open.ask.clone()
        })
        .collect()
    }

    /// Passes a part of an answer on; whether somebody still listens.
    pub(crate) async fn answer(
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
            .map(|open| open.answer.clone());
        let Some(answer) = found else { return false };
        let is_heard = answer.send(lines).await.is_ok();
        if is_end || !is_heard {
            self.open().remove(&id);
        }
        is_heard && !is_end
    }
}

/// Ends the question when nobody listens any more.
struct Question {
    relay: Relay,
    id: u32,
}

impl Drop for Question {
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
    async fn an_agent_answers_and_only_its_own_cluster() {
        let (relay, (own, other, replica)) = (Relay::default(), names());
        let asking = base::task::spawn("asking", {
            let relay = relay.clone();
            async move { relay.ask(own, replica, LogsFrom::Start, true).await }
        });
        assert!(relay.take(other, Duration::from_secs(1)).await.is_empty());
        let asks = relay.take(own, Duration::from_secs(1)).await;
        assert_eq!((asks.len(), asks[0].replica), (1, replica.into()));
        assert!(relay.take(own, Duration::from_secs(1)).await.is_empty(), "it is taken once");
        assert!(!relay.answer(other, asks[0].id, vec![line("a lie")], false).await);
        assert!(relay.answer(own, asks[0].id, vec![line("one")], false).await);
        let mut lines = asking.await.unwrap().unwrap();
        assert_eq!(lines.next().await.unwrap().text, "one");
        relay.answer(own, asks[0].id, vec![line("two")], true).await;
        assert_eq!(lines.next().await.unwrap().text, "two");
        assert!(lines.next().await.is_none(), "the agent said that this was all");
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_listening_stops_the_agent() {
        let (relay, (own, _, replica)) = (Relay::default(), names());
        let asking = base::task::spawn("asking", {
            let relay = relay.clone();
            async move { relay.ask(own, replica, LogsFrom::Start, true).await }
        });
        let asks = relay.take(own, Duration::from_secs(1)).await;
        assert!(relay.answer(own, asks[0].id, Vec::new(), false).await);
        drop(asking.await.unwrap().unwrap());
        assert!(!relay.answer(own, asks[0].id, vec![line("more")], false).await);
        assert!(relay.open().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_does_not_come_is_named() {
        let (relay, (own, _, replica)) = (Relay::default(), names());
        let why = relay.ask(own, replica, LogsFrom::Start, false).await.err().unwrap();
        assert!(why.contains("did not answer"), "{why}");
        assert!(relay.open().is_empty());
    }
}
