//! Drives workers from the work queue: claims, concurrency limits, leases, retries with backoff.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use base::task::Tasks;
use base::{Stop, entropy};
use futures_util::FutureExt;
use model::cluster::Cluster;
use model::environment::Environment;
use model::event::Actor;
use model::instance::Instance;
use model::resource::Resource;
use model::work::{Lane, Requeue};
use model::{Time, backoff};
use store::work::Claim;
use store::{Db, work};

use crate::metrics::{Run, Worker};
use crate::reconcile::{AnyReconcile, Error};
use crate::{Metrics, Reconcile};

/// Settings of the driver.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Maximum number of concurrent reconciliations.
    pub concurrency: usize,
    /// How many of them are reserved for the priority lane, which users wait for.
    pub reserved: usize,
    /// Duration of a claim's lease; it is renewed while the reconciliation runs.
    pub lease: Duration,
    /// Timeout of one reconciliation.
    pub timeout: Duration,
    /// How often every subject that is not idle is reconciled, in case a wake-up was lost.
    pub resync: Duration,
    /// How long running reconciliations may take to finish on shutdown.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 64,
            reserved: 16,
            lease: Duration::from_secs(10),
            timeout: Duration::from_mins(5),
            resync: Duration::from_mins(10),
            drain: Duration::from_secs(5),
        }
    }
}

/// Longest sleep when nothing is due: the signal of another server may be lost.
const MAX_SLEEP: Duration = Duration::from_secs(5);

/// Claims due keys and calls the workers.
pub struct Driver {
    db: Db,
    workers: HashMap<&'static str, Arc<dyn AnyReconcile>>,
    options: Options,
    metrics: Metrics,
}

impl Driver {
    /// Creates a driver without workers.
    pub fn new(db: Db, options: Options, metrics: Metrics) -> Self {
        Self { db, workers: HashMap::new(), options, metrics }
    }

    /// Adds a worker.
    pub fn with<R: Reconcile>(mut self, worker: R) -> Self {
        self.workers.insert(R::NAME, Arc::new(worker));
        self
    }

    /// Runs until stopped, then waits for running reconciliations.
    pub async fn run(self, mut stop: Stop) {
        let driver = Arc::new(self);
        let mut woken = driver.db.work_signal();
        let mut running = Running::default();
        let mut next_resync = base::monotonic() + driver.options.resync;
        let mut renewal = tokio::time::interval(driver.options.lease / 3);
        while !stop.is_set() {
            woken.mark_unchanged();
            let sleep = driver.fill(&mut running).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "reading the work queue failed");
                Duration::from_secs(1)
            });
            tokio::select! {
                () = stop.signalled() => {}
                changed = woken.changed() => if changed.is_err() { break },
                Some(done) = running.tasks.join_next_with_id() => running.remove(done),
                _ = renewal.tick() => driver.renew(&running).await,
                () = tokio::time::sleep(sleep) => {}
            }
            if base::monotonic() >= next_resync {
                next_resync = base::monotonic() + driver.options.resync;
                driver.resync().await;
            }
        }
        driver.drain(running).await;
    }

    /// Starts due work up to the concurrency limit. Returns how long to sleep if nothing happens.
    async fn fill(self: &Arc<Self>, running: &mut Running) -> store::Result<Duration> {
        loop {
            let free = self.options.concurrency.saturating_sub(running.tasks.len());
            if free == 0 {
                return Ok(MAX_SLEEP);
            }
            let (now, due) = (self.db.now(), work::next_due(&mut self.db.read().await?).await?);
            match due {
                None => return Ok(MAX_SLEEP),
                Some(at) if at > now => return Ok(at.since(now).min(MAX_SLEEP)),
                Some(_) => {}
            }
            let claims = self.claim(free).await?;
            if claims.is_empty() {
                // The due work is not in the priority lane, or another server claimed it.
                return Ok(Duration::from_millis(100));
            }
            for claim in claims {
                running.start(self.clone(), claim);
            }
        }
    }

    async fn claim(&self, free: usize) -> store::Result<Vec<Claim>> {
        let open_to_all = free.saturating_sub(self.options.reserved);
        let (lane, free) =
            if open_to_all > 0 { (Lane::Background, open_to_all) } else { (Lane::Priority, free) };
        let mut tx = self.db.begin(Actor::Worker("driver")).await?;
        let limit = i64::try_from(free).unwrap_or(i64::MAX);
        let claims = work::claim(&mut tx, lane, limit, self.options.lease).await?;
        tx.commit().await?;
        Ok(claims)
    }

    /// Reconciles one key and records the outcome.
    async fn run_one(&self, claim: Claim) {
        let started = base::monotonic();
        let delay = self.db.now().since(claim.due_at);
        self.metrics.late_seconds.observe(delay.as_secs_f64());
        let outcome = self.reconcile(&claim).await;
        let worker = claim.key.kind.clone();
        let seconds =
            self.metrics.seconds.get_or_create(&Worker { worker: worker.clone() }).clone();
        seconds.observe(started.elapsed().as_secs_f64());
        let label = if outcome.is_ok() { "ok" } else { "failed" };
        self.metrics.runs.get_or_create(&Run { worker, outcome: label }).inc();
        if let Err(error) = self.record_outcome(&claim, outcome).await {
            // The lease expires and the key is reconciled again.
            tracing::warn!(key = %claim.key, %error, "recording an outcome failed");
        }
    }

    async fn reconcile(&self, claim: &Claim) -> Result<Requeue, Error> {
        let Some(worker) = self.workers.get(claim.key.kind.as_str()) else {
            return Err(Error::Key(claim.key.to_string()));
        };
        let run = AssertUnwindSafe(worker.reconcile(&claim.key.key)).catch_unwind();
        match tokio::time::timeout(self.options.timeout, run).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Error::Panicked),
            Err(_) => Err(Error::TimedOut(self.options.timeout)),
        }
    }

    async fn record_outcome(
        &self,
        claim: &Claim,
        outcome: Result<Requeue, Error>,
    ) -> store::Result<()> {
        let mut tx = self.db.begin(Actor::Worker("driver")).await?;
        match outcome {
            Ok(Requeue::OnChange) => work::finish(&mut tx, claim).await?,
            Ok(Requeue::Now) => work::postpone(&mut tx, claim, self.db.now()).await?,
            Ok(Requeue::At(at)) => work::postpone(&mut tx, claim, at).await?,
            Err(error) => {
                let at = self.retry_at(claim);
                tracing::warn!(key = %claim.key, %error, retry_at = %at, "reconciliation failed");
                work::fail(&mut tx, claim, at, &error.to_string()).await?;
            }
        }
        tx.commit().await
    }

    fn retry_at(&self, claim: &Claim) -> Time {
        let attempts = u32::try_from(claim.attempts + 1).unwrap_or(u32::MAX);
        self.db.now() + backoff::delay(attempts, entropy::random_u64(self.db.entropy()))
    }

    async fn renew(&self, running: &Running) {
        let renewed = async {
            let mut tx = self.db.begin(Actor::Worker("driver")).await?;
            // In key order, the order in which wake-ups are written: avoids deadlocks.
            let mut claims: Vec<&Claim> = running.claims.values().collect();
            claims.sort_by(|a, b| a.key.cmp(&b.key));
            for claim in claims {
                work::renew(&mut tx, claim, self.options.lease).await?;
            }
            tx.commit().await
        };
        if !running.claims.is_empty()
            && let Err(error) = renewed.await
        {
            tracing::warn!(%error, "renewing leases failed");
        }
    }

    async fn resync(&self) {
        let woken = async {
            let mut tx = self.db.begin(Actor::Worker("driver")).await?;
            store::resync::<Cluster>(&mut tx).await?;
            store::resync::<Instance>(&mut tx).await?;
            store::pool::resync(&mut tx).await?;
            store::resync::<Environment>(&mut tx).await?;
            store::resync::<Resource>(&mut tx).await?;
            tx.commit().await
        };
        if let Err(error) = woken.await {
            let error: store::Error = error;
            tracing::warn!(%error, "periodic resync failed");
        }
    }

    async fn drain(&self, mut running: Running) {
        let all = async { while running.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.drain, all).await.is_err() {
            tracing::warn!("reconciliations aborted on shutdown, they will be retried");
        }
    }
}

/// Running reconciliations and their claims.
#[derive(Default)]
struct Running {
    tasks: Tasks<()>,
    claims: HashMap<tokio::task::Id, Claim>,
}

impl Running {
    fn start(&mut self, driver: Arc<Driver>, claim: Claim) {
        driver.metrics.running.inc();
        let task = {
            let claim = claim.clone();
            async move {
                driver.run_one(claim).await;
                driver.metrics.running.dec();
            }
        };
        let handle = self.tasks.spawn("reconcile", task);
        self.claims.insert(handle.id(), claim);
    }

    fn remove(&mut self, done: Result<(tokio::task::Id, ()), tokio::task::JoinError>) {
        let id = done.map_or_else(|error| error.id(), |(id, ())| id);
        self.claims.remove(&id);
    }
}
