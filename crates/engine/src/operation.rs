//! Drives operations on external systems, for the workers of clusters and of resources.
//!
//! A worker holds the lease of a subject while it operates on it ([`store::operation::hold`]). No lease has to
//! be released by hand: that of a server that is gone expires, the next server gets a higher fencing token,
//! and nothing that the first one still writes is accepted. While a call is running, its task stays in memory
//! and a small background task waits for the adapter to announce a change, and wakes the worker then.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::task::Tasks;
use model::event::Actor;
use model::operation::Subject;
use model::work::{Key, Lane, Next};
use model::{Secret, Time};
use port::{Fault, Operation, Seal, Task};
use store::operation::{log, secret};
use store::{Db, Tx, work};
use tokio::task::AbortHandle;

use crate::Error;

/// How long a server may be silent before another one takes over its operations.
const LEASE: Duration = Duration::from_secs(20);
/// How soon a running call is asked again if its adapter announces nothing.
pub(crate) const POLL: Duration = Duration::from_secs(5);
/// How soon to look again at what another server operates on. Also the holder of the lease may be woken then:
/// any server may claim the subject from the work queue.
const RETRY_LEASE: Duration = Duration::from_millis(500);
/// The least time between two calls, however much is announced.
const PAUSE: Duration = Duration::from_millis(200);

/// The operations of one worker.
pub(crate) struct Operations {
    db: Db,
    worker: &'static str,
    seal: Arc<dyn Seal>,
    /// The name under which this server holds leases.
    server: String,
    held: Mutex<HashMap<Subject, Held>>,
    waiting: Mutex<Tasks<()>>,
}

/// A subject whose lease this server holds.
struct Held {
    fence: i64,
    renew_at: Time,
    running: Option<Running>,
}

/// A call: the step that it belongs to, and its task.
struct Running {
    step: String,
    task: Arc<Task>,
    waiter: Option<AbortHandle>,
}

impl Operations {
    pub(crate) fn new(db: Db, worker: &'static str, seal: Arc<dyn Seal>, server: String) -> Self {
        let (held, waiting) = (Mutex::default(), Mutex::default());
        Self { db, worker, seal, server, held, waiting }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Subject, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self) -> Result<Tx, Error> {
        Ok(self.db.begin(Actor::Worker(self.worker)).await?)
    }

    /// Acquires the lease of a subject, or renews it once a third of it has passed; its fencing token, or
    /// when to try again because another server holds it.
    pub(crate) async fn hold(&self, of: Subject) -> Result<Result<i64, Next>, Error> {
        let now = self.db.now();
        if let Some(held) = self.held().get(&of).filter(|held| held.renew_at > now) {
            return Ok(Ok(held.fence));
        }
        let mut tx = self.begin().await?;
        let fence = store::operation::hold(&mut tx, of, &self.server, LEASE).await?;
        let Some(fence) = fence else {
            drop(tx);
            self.forget(of);
            return Ok(Err(self.soon(RETRY_LEASE)));
        };
        tx.commit().await?;
        let mut all = self.held();
        let held = all.entry(of).or_insert(Held { fence, renew_at: now, running: None });
        if held.fence != fence {
            held.running = None;
        }
        (held.fence, held.renew_at) = (fence, now + LEASE / 3);
        Ok(Ok(fence))
    }

    /// Gives the lease of a subject back, with the transaction that ends its step.
    pub(crate) async fn release(&self, tx: &mut Tx, of: Subject) -> Result<(), Error> {
        self.forget(of);
        Ok(store::operation::let_go(tx, of, &self.server).await?)
    }

    /// Gives the lease of a subject back by itself.
    pub(crate) async fn let_go(&self, of: Subject) -> Result<(), Error> {
        let mut tx = self.begin().await?;
        self.release(&mut tx, of).await?;
        Ok(tx.commit().await?)
    }

    fn forget(&self, of: Subject) {
        self.held().remove(&of);
    }

    /// The task of a step whose call is running.
    pub(crate) fn running(&self, of: Subject, step: &str) -> Option<Arc<Task>> {
        let all = self.held();
        let running = all.get(&of)?.running.as_ref().filter(|running| running.step == step)?;
        Some(running.task.clone())
    }

    /// Decrypts what is persisted for a subject.
    pub(crate) async fn open(
        &self,
        of: Subject,
    ) -> Result<Result<BTreeMap<String, Secret>, Fault>, Error> {
        let sealed = secret::all(&mut self.db.read().await?, of).await?;
        let mut open = BTreeMap::new();
        for (name, sealed) in sealed {
            match self.seal.open(&of.purpose(&name), &sealed).await {
                Ok(secret) => open.insert(name, secret),
                Err(fault) => return Ok(Err(fault)),
            };
        }
        Ok(Ok(open))
    }

    /// Persists what an adapter has by now, and the log, however the last call ended: what was created
    /// half-way must not be lost, and what finds it again must be persisted before more is created.
    pub(crate) async fn keep(
        &self,
        operation: &dyn Operation,
        task: &Task,
    ) -> Result<Result<(), Fault>, Error> {
        let kept = match operation.keep(task).await {
            Ok(kept) => kept,
            Err(fault) => return Ok(Err(fault)),
        };
        let sealed = match seal_all(&*self.seal, task.id, &kept).await {
            Ok(sealed) => sealed,
            Err(fault) => return Ok(Err(fault)),
        };
        let lines = task.log.take();
        if lines.is_empty() && sealed.is_empty() {
            return Ok(Ok(()));
        }
        let mut tx = self.begin().await?;
        secret::set(&mut tx, task.id, task.fence, &sealed).await?;
        log::append(&mut tx, task.id, &lines).await?;
        tx.commit().await?;
        self.kept(task.id, kept);
        Ok(Ok(()))
    }

    /// Notes in the task of a step what was persisted since it began.
    pub(crate) fn kept(&self, of: Subject, kept: BTreeMap<String, Secret>) {
        if let Some(running) = self.held().get_mut(&of).and_then(|held| held.running.as_mut()) {
            Arc::make_mut(&mut running.task).kept.extend(kept);
        }
    }

    /// Keeps the task of a step in memory until its call has ended.
    pub(crate) fn start(&self, task: Task, step: &str) -> Arc<Task> {
        let task = Arc::new(task);
        if let Some(held) = self.held().get_mut(&task.id) {
            held.end();
            let (step, task) = (step.to_owned(), task.clone());
            held.running = Some(Running { step, task, waiter: None });
        }
        task
    }

    /// The call of a step has ended: the next one gets a task of its own.
    pub(crate) fn end(&self, of: Subject) {
        if let Some(held) = self.held().get_mut(&of) {
            held.end();
        }
    }

    /// Wakes the worker when the adapter announces a change; when to ask again otherwise.
    pub(crate) fn wait(&self, operation: &Arc<dyn Operation>, of: Subject) -> Next {
        if let Some(running) = self.held().get_mut(&of).and_then(|held| held.running.as_mut())
            && running.waiter.as_ref().is_none_or(AbortHandle::is_finished)
        {
            running.waiter = Some(self.spawn_waiter(operation.clone(), running.task.clone()));
        }
        self.soon(POLL)
    }

    fn spawn_waiter(&self, operation: Arc<dyn Operation>, task: Arc<Task>) -> AbortHandle {
        let (db, worker) = (self.db.clone(), self.worker);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.try_join_next().is_some() {}
        waiting.spawn("operation", async move {
            tokio::time::sleep(PAUSE).await;
            operation.changed(&task).await;
            let wake = async {
                let mut tx = db.begin(Actor::Worker(worker)).await?;
                work::wake(&mut tx, Lane::Background, Key::new(worker, task.id));
                tx.commit().await
            };
            if let Err(error) = wake.await {
                tracing::warn!(subject = %task.id, %error, "operation not woken, it is polled");
            }
        })
    }

    pub(crate) fn soon(&self, after: Duration) -> Next {
        Next::At(self.db.now() + after)
    }
}

impl Held {
    fn end(&mut self) {
        if let Some(Running { waiter: Some(waiter), .. }) = self.running.take() {
            waiter.abort();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}

/// Encrypts secrets of a subject, for it alone.
pub async fn seal_all(
    seal: &dyn Seal,
    of: impl Into<Subject>,
    secrets: &BTreeMap<String, Secret>,
) -> Result<BTreeMap<String, String>, Fault> {
    let (of, mut sealed) = (of.into(), BTreeMap::new());
    for (name, secret) in secrets {
        sealed.insert(name.clone(), seal.seal(&of.purpose(name), secret).await?);
    }
    Ok(sealed)
}
