//! A scripted worker that records its runs.

use base::Instant;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{Stopper, stop, task};
use engine::{Driver, Error, Metrics, Options, Reconcile};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use model::event::Actor;
use model::work::{Key, Lane, Requeue};
use store::{Db, work};
use tokio::task::JoinHandle;

/// What the worker does for a key at its n-th run.
type Act = dyn Fn(&str, usize) -> BoxFuture<'static, Result<Requeue, Error>> + Send + Sync;

/// The worker.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) record: Arc<Record>,
    act: Arc<Act>,
}

impl Probe {
    pub(crate) fn new<F>(act: impl Fn(&str, usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Requeue, Error>> + Send + 'static,
    {
        Self { record: Arc::default(), act: Arc::new(move |key, nth| act(key, nth).boxed()) }
    }

    /// A worker whose runs take that long and finish.
    pub(crate) fn that_takes(time: Duration) -> Self {
        Self::new(move |_, _| async move {
            tokio::time::sleep(time).await;
            Ok(Requeue::OnChange)
        })
    }
}

impl Reconcile for Probe {
    const NAME: &'static str = "probe";

    async fn reconcile(&self, key: &str) -> Result<Requeue, Error> {
        let nth = self.record.enter(key);
        let _leave = Leave(&self.record, key);
        (self.act)(key, nth).await
    }
}

/// Records which keys ran, when, and how many at once.
#[derive(Default)]
pub(crate) struct Record(Mutex<State>);

#[derive(Default)]
struct State {
    starts: Vec<(String, Instant)>,
    running: HashMap<String, usize>,
    max_concurrency: usize,
    overlaps: Vec<String>,
}

impl Record {
    fn enter(&self, key: &str) -> usize {
        let mut state = self.0.lock().unwrap();
        state.starts.push((key.to_owned(), base::monotonic()));
        let count = state.running.entry(key.to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            state.overlaps.push(key.to_owned());
        }
        state.max_concurrency = state.max_concurrency.max(state.running.values().sum());
        state.starts.iter().filter(|(started, _)| started == key).count()
    }

    /// When the key's runs began.
    pub(crate) fn starts(&self, key: &str) -> Vec<Instant> {
        let state = self.0.lock().unwrap();
        state.starts.iter().filter(|(started, _)| started == key).map(|(_, at)| *at).collect()
    }

    /// How often the key ran.
    pub(crate) fn runs(&self, key: &str) -> usize {
        self.starts(key).len()
    }

    /// Total number of runs.
    pub(crate) fn all(&self) -> usize {
        self.0.lock().unwrap().starts.len()
    }

    /// Number of current runs.
    pub(crate) fn now(&self) -> usize {
        self.0.lock().unwrap().running.values().sum()
    }

    /// Maximum number of concurrent runs.
    pub(crate) fn max_concurrency(&self) -> usize {
        self.0.lock().unwrap().max_concurrency
    }

    /// Keys that ran twice at the same time.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        self.0.lock().unwrap().overlaps.clone()
    }
}

struct Leave<'a>(&'a Record, &'a str);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0.0.lock().unwrap().running.get_mut(self.1) {
            *count -= 1;
        }
    }
}

/// A driver that runs until it is stopped or dropped.
pub(crate) struct Running {
    pub(crate) stopper: Stopper,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) fn start(db: &Db, options: Options, probe: &Probe) -> Running {
    let driver = Driver::new(db.clone(), options, Metrics::default()).with(probe.clone());
    start_driver(driver)
}

pub(crate) fn start_driver(driver: Driver) -> Running {
    let (stopper, stop) = stop::channel();
    Running { stopper, task: task::spawn("driver", driver.run(stop)) }
}

pub(crate) async fn wake(db: &Db, lane: Lane, keys: impl IntoIterator<Item: ToString>) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    for key in keys {
        work::wake(&mut tx, lane, Key::new(Probe::NAME, key.to_string()));
    }
    tx.commit().await.unwrap();
}

/// Number of queued keys, and of failed ones among them.
pub(crate) async fn depth(db: &Db) -> (i64, i64) {
    work::depth(&mut db.read().await.unwrap()).await.unwrap()
}

/// Waits until the condition holds; fails after 30 seconds.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = base::monotonic();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(30), "timed out waiting for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the queue is idle.
pub(crate) async fn until_idle(db: &Db) {
    until("an idle queue", async || depth(db).await.0 == 0).await;
}
