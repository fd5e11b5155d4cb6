//! A worker that does what a test wants and keeps a record of it.

use base::Instant;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{Stopper, stop, task};
use engine::{Driver, Error, Metrics, Options, Reconcile};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use model::event::Actor;
use model::work::{Key, Lane, Next};
use store::{Db, work};
use tokio::task::JoinHandle;

/// What it does for a key, at its n-th run.
type Act = dyn Fn(&str, usize) -> BoxFuture<'static, Result<Next, Error>> + Send + Sync;

/// The worker.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) record: Arc<Record>,
    act: Arc<Act>,
}

impl Probe {
    pub(crate) fn new<F>(act: impl Fn(&str, usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Next, Error>> + Send + 'static,
    {
        Self { record: Arc::default(), act: Arc::new(move |key, nth| act(key, nth).boxed()) }
    }

    /// One whose runs take that long and need no other.
    pub(crate) fn that_takes(time: Duration) -> Self {
        Self::new(move |_, _| async move {
            tokio::time::sleep(time).await;
            Ok(Next::Rest)
        })
    }
}

impl Reconcile for Probe {
    const NAME: &'static str = "probe";

    async fn reconcile(&self, key: &str) -> Result<Next, Error> {
        let nth = self.record.enter(key);
        let _leave = Leave(&self.record, key);
        (self.act)(key, nth).await
    }
}

/// What ran, when, how many at once.
#[derive(Default)]
pub(crate) struct Record(Mutex<State>);

#[derive(Default)]
struct State {
    starts: Vec<(String, Instant)>,
    running: HashMap<String, usize>,
    most: usize,
    overlaps: Vec<String>,
}

impl Record {
    fn enter(&self, key: &str) -> usize {
        let mut state = self.0.lock().unwrap();
        state.starts.push((key.to_owned(), base::monotonic()));
        let beside = state.running.entry(key.to_owned()).or_default();
        *beside += 1;
        if *beside > 1 {
            state.overlaps.push(key.to_owned());
        }
        state.most = state.most.max(state.running.values().sum());
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

    /// How many runs there were.
    pub(crate) fn all(&self) -> usize {
        self.0.lock().unwrap().starts.len()
    }

    /// How many run now.
    pub(crate) fn now(&self) -> usize {
        self.0.lock().unwrap().running.values().sum()
    }

    /// How many ran at once, at most.
    pub(crate) fn most(&self) -> usize {
        self.0.lock().unwrap().most
    }

    /// Keys that ran twice at the same time.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        self.0.lock().unwrap().overlaps.clone()
    }
}

struct Leave<'a>(&'a Record, &'a str);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some(beside) = self.0.0.lock().unwrap().running.get_mut(self.1) {
            *beside -= 1;
        }
    }
}

/// A driver that runs, until it is told to stop or this is dropped.
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

/// How many keys are in the queue, and how many of them have failed.
pub(crate) async fn depth(db: &Db) -> (i64, i64) {
    work::depth(&mut db.read().await.unwrap()).await.unwrap()
}

/// Waits until it is so; for longer than that, something is stuck.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = base::monotonic();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(30), "it never came to be: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until nothing is left to do.
pub(crate) async fn until_at_rest(db: &Db) {
    until("rest", async || depth(db).await.0 == 0).await;
}
