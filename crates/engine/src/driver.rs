//! The driver of the work queue: who runs, when, how many at once, and what happens after a failure.

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
use model::work::{Lane, Next};
use model::{Time, backoff};
use store::work::Claim;
use store::{Db, work};

use crate::metrics::{Run, Worker};
use crate::reconcile::{AnyReconcile, Error};
use crate::{Metrics, Reconcile};

/// How the driver works.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many steps run at once.
    pub concurrency: usize,
    /// How many of these only what somebody waits for may use.
    pub reserved: usize,
    /// How long a claim is ours if we don't say otherwise.
    pub lease: Duration,
    /// How long a step may take.
    pub step_timeout: Duration,
    /// How often everything that is not at rest is looked at, should a wake-up have been lost.
    pub resync: Duration,
    /// How long to finish what runs when the server stops.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 64,
            reserved: 16,
            lease: Duration::from_secs(10),
            step_timeout: Duration::from_mins(5),
            resync: Duration::from_mins(10),
            drain: Duration::from_secs(5),
        }
    }
}

/// How long to sleep at most when nothing is due: another replica's signal may have been lost.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// Drives workers from the queue.
pub struct Driver {
    db: Db,
    workers: HashMap<&'static str, Arc<dyn AnyReconcile>>,
    options: Options,
    metrics: Metrics,
}

impl Driver {
    /// A driver without workers.
    pub fn new(db: Db, options: Options, metrics: Metrics) -> Self {
        Self { db, workers: HashMap::new(), options, metrics }
    }

    /// Adds a worker.
    pub fn with<R: Reconcile>(mut self, worker: R) -> Self {
        self.workers.insert(R::NAME, Arc::new(worker));
        self
    }

    /// Runs until told to stop, then finishes what is under way.
    pub async fn run(self, mut stop: Stop) {
        let driver = Arc::new(self);
        let mut woken = driver.db.work_signal();
        let mut running = Running::default();
        let mut next_resync = base::monotonic() + driver.options.resync;
        let mut renewal = tokio::time::interval(driver.options.lease / 3);
        while !stop.is_set() {
            woken.mark_unchanged();
            let sleep = driver.fill(&mut running).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "the work queue can't be read");
                Duration::from_secs(1)
            });
            tokio::select! {
                () = stop.told() => {}
                changed = woken.changed() => if changed.is_err() { break },
                Some(done) = running.tasks.join_next_with_id() => running.ended(done),
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

    /// Starts what is due, as far as there is room; how long to sleep if nothing happens.
    async fn fill(self: &Arc<Self>, running: &mut Running) -> store::Result<Duration> {
        loop {
            let room = self.options.concurrency.saturating_sub(running.tasks.len());
            if room == 0 {
                return Ok(LONGEST_SLEEP);
            }
            let (now, due) = (self.db.now(), work::next_due(&mut self.db.read().await?).await?);
            match due {
                None => return Ok(LONGEST_SLEEP),
                Some(at) if at > now => return Ok(at.since(now).min(LONGEST_SLEEP)),
                Some(_) => {}
            }
            let claims = self.claim(room).await?;
            if claims.is_empty() {
                // What is due is not for the room that is left, or another replica was faster.
                return Ok(Duration::from_millis(100));
            }
            for claim in claims {
                running.start(self.clone(), claim);
            }
        }
    }

    async fn claim(&self, room: usize) -> store::Result<Vec<Claim>> {
        let open_to_all = room.saturating_sub(self.options.reserved);
        let (lane, room) =
            if open_to_all > 0 { (Lane::Background, open_to_all) } else { (Lane::Priority, room) };
        let mut tx = self.db.begin(Actor::Worker("driver")).await?;
        let limit = i64::try_from(room).unwrap_or(i64::MAX);
        let claims = work::claim(&mut tx, lane, limit, self.options.lease).await?;
        tx.commit().await?;
        Ok(claims)
    }

    /// One step for one key, whatever happens in it.
    async fn step(&self, claim: Claim) {
        let started = base::monotonic();
        let late = self.db.now().since(claim.due_at);
        self.metrics.late_seconds.observe(late.as_secs_f64());
        let outcome = self.reconcile(&claim).await;
        let worker = claim.key.kind.clone();
        let seconds =
            self.metrics.seconds.get_or_create(&Worker { worker: worker.clone() }).clone();
        seconds.observe(started.elapsed().as_secs_f64());
        let label = if outcome.is_ok() { "ok" } else { "failed" };
        self.metrics.runs.get_or_create(&Run { worker, outcome: label }).inc();
        if let Err(error) = self.settle(&claim, outcome).await {
            // The lease will run out and the key will be looked at again.
            tracing::warn!(key = %claim.key, %error, "the outcome of a step was not recorded");
        }
    }

    async fn reconcile(&self, claim: &Claim) -> Result<Next, Error> {
        let Some(worker) = self.workers.get(claim.key.kind.as_str()) else {
            return Err(Error::Key(claim.key.to_string()));
        };
        let step = AssertUnwindSafe(worker.reconcile(&claim.key.key)).catch_unwind();
        match tokio::time::timeout(self.options.step_timeout, step).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Error::Panicked),
            Err(_) => Err(Error::Late(self.options.step_timeout)),
        }
    }

    async fn settle(&self, claim: &Claim, outcome: Result<Next, Error>) -> store::Result<()> {
        let mut tx = self.db.begin(Actor::Worker("driver")).await?;
        match outcome {
            Ok(Next::Rest) => work::finish(&mut tx, claim).await?,
            Ok(Next::Again) => work::postpone(&mut tx, claim, self.db.now()).await?,
            Ok(Next::At(at)) => work::postpone(&mut tx, claim, at).await?,
            Err(error) => {
                let at = self.retry_at(claim);
                tracing::warn!(key = %claim.key, %error, again_at = %at, "a step failed");
                work::fail(&mut tx, claim, at, &error.to_string()).await?;
            }
        }
        tx.commit().await
    }

    fn retry_at(&self, claim: &Claim) -> Time {
        let attempts = u32::try_from(claim.attempts + 1).unwrap_or(u32::MAX);
        self.db.now() + backoff::delay(attempts, entropy::noise(self.db.entropy()))
    }

    async fn renew(&self, running: &Running) {
        let renewed = async {
            let mut tx = self.db.begin(Actor::Worker("driver")).await?;
            // In the order of the keys, as wake-ups are written: no two wait for each other.
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
            tracing::warn!(%error, "leases were not renewed");
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
            tracing::warn!(%error, "the safety net was not cast");
        }
    }

    async fn drain(&self, mut running: Running) {
        let all = async { while running.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.drain, all).await.is_err() {
            tracing::warn!("some steps did not end in time; they will be taken again");
        }
    }
}

/// The steps under way.
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
                driver.step(claim).await;
                driver.metrics.running.dec();
            }
        };
        let handle = self.tasks.spawn("reconcile", task);
        self.claims.insert(handle.id(), claim);
    }

    fn ended(&mut self, done: Result<(tokio::task::Id, ()), tokio::task::JoinError>) {
        let id = done.map_or_else(|error| error.id(), |(id, ())| id);
        self.claims.remove(&id);
    }
}
