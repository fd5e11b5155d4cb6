//! The agent's loop: one task per replica, one reporter for all.

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

/// Pause before another request to a control plane that did not answer.
const RETRY: Duration = Duration::from_millis(500);
/// Pause before another attempt to stop a replica.
const STOP_RETRY: Duration = Duration::from_secs(5);
/// Maximum number of reports per request.
const BATCH: usize = 256;
/// How much of an ended replica's log is reported, and how long reading it may take.
const TAIL_LINES: usize = 100;
const TAIL_BYTES: usize = 32 * 1024;
const TAIL_TIMEOUT: Duration = Duration::from_secs(2);

/// The agent of the clusters that one link serves.
pub struct Agent<L> {
    link: Arc<L>,
    runtime: Arc<dyn Runtime>,
    /// The desired state of each replica, received by its task.
    desired: HashMap<ReplicaId, watch::Sender<Desired>>,
    /// One task per replica; each returns the last generation that it reconciled.
    tasks: Tasks<(ReplicaId, i64)>,
    reports: mpsc::Sender<Report>,
}

impl<L: Link> Agent<L> {
    /// Runs until the future is dropped; containers keep running.
    pub async fn run(link: Arc<L>, runtime: Arc<dyn Runtime>) {
        let (reports, inbox) = mpsc::channel(BATCH);
        let reporter = report_all(link.clone(), inbox);
        let desired = HashMap::new();
        let mut agent = Self { link, runtime, desired, tasks: Tasks::new(), reports };
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
                        self.set_desired(desired);
                    }
                }
                Err(LinkError(error)) => {
                    tracing::warn!(%error, "fetching desired state failed");
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
                Some(done) = self.tasks.join_next() => self.task_ended(done),
            }
        }
    }

    /// Passes the desired state to the replica's task; starts one if there is none.
    fn set_desired(&mut self, desired: Desired) {
        let id = desired.replica;
        if let Some(sender) = self.desired.get(&id)
            && !sender.is_closed()
        {
            sender.send_if_modified(|now| {
                let newer = now.generation < desired.generation;
                if newer {
                    *now = desired;
                }
                newer
            });
            return;
        }
        let (sender, desired) = watch::channel(desired);
        self.desired.insert(id, sender);
        let task =
            ReplicaTask { runtime: self.runtime.clone(), desired, reports: self.reports.clone() };
        self.tasks.spawn("replica", task.run(id));
    }

    fn task_ended(&mut self, done: Result<(ReplicaId, i64), tokio::task::JoinError>) {
        let (id, reconciled) = match done {
            Ok(done) => done,
            Err(error) => return tracing::error!(%error, "replica task failed"),
        };
        let Some(sender) = self.desired.get(&id).filter(|sender| sender.is_closed()) else {
            return;
        };
        let last = sender.borrow().clone();
        self.desired.remove(&id);
        // A change that arrived while the task was ending.
        if last.generation > reconciled {
            self.set_desired(last);
        }
    }
}

/// Reconciles one replica until it is removed.
struct ReplicaTask {
    runtime: Arc<dyn Runtime>,
    desired: watch::Receiver<Desired>,
    reports: mpsc::Sender<Report>,
}

impl ReplicaTask {
    async fn run(mut self, id: ReplicaId) -> (ReplicaId, i64) {
        let mut ran: Option<Spec> = None;
        loop {
            let desired = self.desired.borrow_and_update().clone();
            let result = (id, desired.generation);
            if ran.is_some() && desired.run.is_some() && ran != desired.run {
                // The runtime would adopt the old container.
                self.until_stopped(id).await;
            }
            ran.clone_from(&desired.run);
            let Some(spec) = &desired.run else {
                self.stop(&desired).await;
                // A change that arrived meanwhile needs another iteration.
                if self.desired.has_changed().unwrap_or(false) {
                    continue;
                }
                return result;
            };
            let runtime = self.runtime.clone();
            let watcher = Watcher { runtime, reports: self.reports.clone(), desired: &desired };
            tokio::select! {
                never = watcher.run(spec) => match never {},
                changed = self.desired.changed() => if changed.is_err() { return result },
            }
        }
    }

    async fn stop(&self, desired: &Desired) {
        self.until_stopped(desired.replica).await;
        report(&self.reports, desired, Observed::Gone, Vec::new()).await;
    }

    async fn until_stopped(&self, id: ReplicaId) {
        while let Err(error) = self.runtime.stop(id).await {
            tracing::warn!(replica = %id, %error, "stopping replica failed, retrying");
            tokio::time::sleep(STOP_RETRY).await;
        }
    }
}

/// Starts one generation of a replica and reports its observed state until that changes.
struct Watcher<'a> {
    runtime: Arc<dyn Runtime>,
    reports: mpsc::Sender<Report>,
    desired: &'a Desired,
}

impl Watcher<'_> {
    async fn run(&self, spec: &Spec) -> Infallible {
        let id = self.desired.replica;
        report(&self.reports, self.desired, Observed::Starting, Vec::new()).await;
        let mut now = if spec.has_workload() {
            let Desired { node, organization, .. } = self.desired;
            self.runtime.start(id, node, *organization, spec).await
        } else {
            self.reserve_only().await
        };
        loop {
            now = self.await_readiness(spec, now).await;
            let is_over = matches!(now, Observed::Completed | Observed::Failed { .. });
            let tail = if is_over { self.tail().await } else { Vec::new() };
            report(&self.reports, self.desired, now.clone(), tail).await;
            if is_over || !spec.has_workload() {
                return std::future::pending().await;
            }
            now = self.runtime.changed(id, &now).await;
        }
    }

    /// Waits for the readiness check to pass, if there is one, or for another observed state.
    async fn await_readiness(&self, spec: &Spec, now: Observed) -> Observed {
        let (Observed::Running { endpoints }, Some(probe)) = (&now, &spec.ready) else {
            return now;
        };
        if !self.runtime.is_real() || self.runtime.checks_readiness() {
            return now;
        }
        tokio::select! {
            ready = probe::until_ready(probe, &spec.ports, endpoints) => match ready {
                Ok(()) => now,
                Err(reason) => Observed::Failed { reason },
            },
            other = self.runtime.changed(self.desired.replica, &now) => other,
        }
    }

    /// A replica without an image only reserves capacity: removes a container that it had before.
    async fn reserve_only(&self) -> Observed {
        match self.runtime.stop(self.desired.replica).await {
            Ok(()) => Observed::Running { endpoints: Vec::new() },
            Err(error) => Observed::Failed { reason: error.into() },
        }
    }

    /// The last lines of the log, which outlive the container.
    async fn tail(&self) -> Vec<LogLine> {
        let lines = self.runtime.logs(self.desired.replica, LogsFrom::Last(TAIL_LINES), false);
        let all = tokio::time::timeout(TAIL_TIMEOUT, lines.collect::<Vec<_>>());
        let mut lines = all.await.unwrap_or_default();
        let mut budget = TAIL_BYTES;
        let fits = |line: &&LogLine| {
            let left = budget.checked_sub(line.text.len());
            budget = left.unwrap_or(0);
            left.is_some()
        };
        let kept = lines.iter().rev().take_while(fits).count();
        lines.split_off(lines.len() - kept)
    }
}

async fn report(
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

/// Sends reports in order and in batches; retries until each has arrived.
async fn report_all<L: Link>(link: Arc<L>, mut inbox: mpsc::Receiver<Report>) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.recv_many(&mut batch, BATCH).await > 0 {
        while let Err(LinkError(error)) = link.report(&batch).await {
            tracing::warn!(%error, "sending reports failed, retrying");
            tokio::time::sleep(RETRY).await;
        }
        batch.clear();
    }
}

#[cfg(test)]
mod tests;
