//! The agent's loop: one small task per replica, one reporter for all.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use base::task::Tasks;
use futures_util::StreamExt as _;
use model::agent::{Desired, Observed, ReplicaId, Report};
use model::deployment::Spec;
use model::log::{LogLine, LogsFrom};
use tokio::sync::{mpsc, watch};

use crate::{Link, LinkError, Runtime, probe};

/// How long to wait before asking a control plane again that did not answer.
const RETRY: Duration = Duration::from_millis(500);
/// How long to wait before trying again to stop what did not stop.
const STOP_RETRY: Duration = Duration::from_secs(5);
/// How many reports go in one call at most.
const BATCH: usize = 256;
/// How much of the log of something that has ended is kept, and how long reading it may take.
const TAIL_LINES: usize = 100;
const TAIL_BYTES: usize = 32 * 1024;
const TAIL_PATIENCE: Duration = Duration::from_secs(2);

/// The agent of the clusters that one link speaks for.
pub struct Agent<L> {
    link: Arc<L>,
    runtime: Arc<dyn Runtime>,
    /// What each replica's task shall bring about.
    wishes: HashMap<ReplicaId, watch::Sender<Desired>>,
    /// Each ends with the generation of the wish that it fulfilled last.
    tasks: Tasks<(ReplicaId, i64)>,
    reports: mpsc::Sender<Report>,
}

impl<L: Link> Agent<L> {
    /// Serves until the future is dropped; what runs goes on running.
    pub async fn run(link: Arc<L>, runtime: Arc<dyn Runtime>) {
        let (reports, inbox) = mpsc::channel(BATCH);
        let reporter = report_all(link.clone(), inbox);
        let mut agent =
            Self { link, runtime, wishes: HashMap::new(), tasks: Tasks::new(), reports };
        tokio::select! {
            () = agent.serve() => {}
            () = reporter => {}
        }
    }

    async fn serve(&mut self) {
        let mut all = true;
        loop {
            match self.link.desired(all).await {
                Ok(desired) => {
                    all = false;
                    for desired in desired {
                        self.wish(desired);
                    }
                }
                Err(LinkError(error)) => {
                    tracing::warn!(%error, "the control plane does not say what shall be");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            }
            self.until_changed().await;
        }
    }

    async fn until_changed(&mut self) {
        let link = self.link.clone();
        loop {
            tokio::select! {
                () = link.changed() => return,
                Some(done) = self.tasks.join_next() => self.ended(done),
            }
        }
    }

    /// Tells the replica's task, or starts one.
    fn wish(&mut self, desired: Desired) {
        let id = desired.replica;
        if let Some(wish) = self.wishes.get(&id)
            && !wish.is_closed()
        {
            wish.send_if_modified(|now| {
                let newer = now.generation < desired.generation;
                if newer {
                    *now = desired;
                }
                newer
            });
            return;
        }
        let (wish, wishes) = watch::channel(desired);
        self.wishes.insert(id, wish);
        let keeper =
            Keeper { runtime: self.runtime.clone(), wishes, reports: self.reports.clone() };
        self.tasks.spawn("replica", keeper.keep(id));
    }

    fn ended(&mut self, done: Result<(ReplicaId, i64), tokio::task::JoinError>) {
        let (id, fulfilled) = match done {
            Ok(done) => done,
            Err(error) => return tracing::error!(%error, "a replica's task failed"),
        };
        let Some(wish) = self.wishes.get(&id).filter(|wish| wish.is_closed()) else { return };
        let last = wish.borrow().clone();
        self.wishes.remove(&id);
        // It came when the task was already on its way out.
        if last.generation > fulfilled {
            self.wish(last);
        }
    }
}

/// Keeps one replica as it shall be, until it shall be gone and is.
struct Keeper {
    runtime: Arc<dyn Runtime>,
    wishes: watch::Receiver<Desired>,
    reports: mpsc::Sender<Report>,
}

impl Keeper {
    async fn keep(mut self, id: ReplicaId) -> (ReplicaId, i64) {
        let mut ran: Option<Spec> = None;
        loop {
            let desired = self.wishes.borrow_and_update().clone();
            let over = (id, desired.generation);
            if ran.is_some() && desired.run.is_some() && ran != desired.run {
                // The runtime would find the old one running and leave it at that.
                self.until_stopped(id).await;
            }
            ran.clone_from(&desired.run);
            let Some(spec) = &desired.run else {
                self.stop(&desired).await;
                // A wish that came meanwhile needs a fresh start; otherwise the task is over.
                if self.wishes.has_changed().unwrap_or(false) {
                    continue;
                }
                return over;
            };
            let runtime = self.runtime.clone();
            let watcher = Watcher { runtime, reports: self.reports.clone(), desired: &desired };
            tokio::select! {
                never = watcher.run(spec) => match never {},
                changed = self.wishes.changed() => if changed.is_err() { return over },
            }
        }
    }

    async fn stop(&self, desired: &Desired) {
        self.until_stopped(desired.replica).await;
        say(&self.reports, desired, Observed::Gone, Vec::new()).await;
    }

    async fn until_stopped(&self, id: ReplicaId) {
        while let Err(error) = self.runtime.stop(id).await {
            tracing::warn!(replica = %id, %error, "it does not stop, trying again");
            tokio::time::sleep(STOP_RETRY).await;
        }
    }
}

/// Has one wish come true and says how it is doing, for as long as the wish stands.
struct Watcher<'a> {
    runtime: Arc<dyn Runtime>,
    reports: mpsc::Sender<Report>,
    desired: &'a Desired,
}

impl Watcher<'_> {
    async fn run(&self, spec: &Spec) -> Infallible {
        let id = self.desired.replica;
        say(&self.reports, self.desired, Observed::Starting, Vec::new()).await;
        let mut now = if spec.runs() {
            self.runtime.start(id, &self.desired.node, spec).await
        } else {
            self.hold().await
        };
        loop {
            now = self.once_ready(spec, now).await;
            let is_over = matches!(now, Observed::Completed | Observed::Failed { .. });
            let tail = if is_over { self.tail().await } else { Vec::new() };
            say(&self.reports, self.desired, now.clone(), tail).await;
            if is_over || !spec.runs() {
                return std::future::pending().await;
            }
            now = self.runtime.changed(id, &now).await;
        }
    }

    /// How it is doing once it answers, if it must; or differently before that.
    async fn once_ready(&self, spec: &Spec, now: Observed) -> Observed {
        let (Observed::Running { endpoints }, Some(probe)) = (&now, &spec.ready) else {
            return now;
        };
        if !self.runtime.is_real() || self.runtime.asks_itself() {
            return now;
        }
        tokio::select! {
            answered = probe::until_answered(probe, &spec.ports, endpoints) => match answered {
                Ok(()) => now,
                Err(reason) => Observed::Failed { reason },
            },
            other = self.runtime.changed(self.desired.replica, &now) => other,
        }
    }

    /// Without an image it only holds capacity: what it ran before it no longer does.
    async fn hold(&self) -> Observed {
        match self.runtime.stop(self.desired.replica).await {
            Ok(()) => Observed::Running { endpoints: Vec::new() },
            Err(error) => Observed::Failed { reason: error.into() },
        }
    }

    /// The last lines of its log: what is left of it when it is cleared away.
    async fn tail(&self) -> Vec<LogLine> {
        let lines = self.runtime.logs(self.desired.replica, LogsFrom::Last(TAIL_LINES), false);
        let all = tokio::time::timeout(TAIL_PATIENCE, lines.collect::<Vec<_>>());
        let mut lines = all.await.unwrap_or_default();
        let mut room = TAIL_BYTES;
        let fits = |line: &&LogLine| {
            let left = room.checked_sub(line.text.len());
            room = left.unwrap_or(0);
            left.is_some()
        };
        let kept = lines.iter().rev().take_while(fits).count();
        lines.split_off(lines.len() - kept)
    }
}

async fn say(
    reports: &mpsc::Sender<Report>,
    desired: &Desired,
    observed: Observed,
    tail: Vec<LogLine>,
) {
    let (replica, cluster) = (desired.replica, desired.cluster);
    let generation = desired.generation;
    // The reporter ends only with the agent.
    let _ = reports.send(Report { replica, cluster, generation, observed, tail }).await;
}

/// Sends reports in order, many in one call, until each has arrived.
async fn report_all<L: Link>(link: Arc<L>, mut inbox: mpsc::Receiver<Report>) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.recv_many(&mut batch, BATCH).await > 0 {
        while let Err(LinkError(error)) = link.report(&batch).await {
            tracing::warn!(%error, "the control plane does not take reports, trying again");
            tokio::time::sleep(RETRY).await;
        }
        batch.clear();
    }
}

#[cfg(test)]
mod tests;
