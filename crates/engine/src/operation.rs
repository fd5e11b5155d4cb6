//! Drives operations on external systems, for the workers of clusters and of resources.
//!
//! A worker holds the lease of a subject while it operates on it ([`store::operation::acquire`]).
//! Leases need no cleanup: the lease of a dead server expires, the next server gets a higher
//! fencing token, and late writes of the first one are rejected. While a call runs, its task stays
//! in memory, and a background task waits for the adapter to announce a change and wakes the
//! worker.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::task::Tasks;
use model::event::Actor;
use model::operation::Subject;
use model::work::{Key, Lane, Requeue};
use model::{Secret, Time};
use port::{Encryption, Fault, Operation, Task};
use store::operation::{log, secret};
use store::{Db, Tx, work};
use tokio::task::AbortHandle;

use crate::Error;

/// How long a server may be silent before another one takes over its operations.
const LEASE: Duration = Duration::from_secs(20);
/// How often a running call is polled if its adapter announces nothing.
pub(crate) const POLL: Duration = Duration::from_secs(5);
/// How soon to retry while another server holds the lease: any server may claim the subject.
const RETRY_LEASE: Duration = Duration::from_millis(500);
/// Minimum interval between two calls, however many changes are announced.
const PAUSE: Duration = Duration::from_millis(200);

/// The operations of one worker.
pub(crate) struct Operations {
    db: Db,
    worker: &'static str,
    seal: Arc<dyn Encryption>,
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

/// A running call: its step and its task.
struct Running {
    step: String,
    task: Arc<Task>,
    waiter: Option<AbortHandle>,
}

impl Operations {
    pub(crate) fn new(
        db: Db,
        worker: &'static str,
        seal: Arc<dyn Encryption>,
        server: String,
    ) -> Self {
        let (held, waiting) = (Mutex::default(), Mutex::default());
        Self { db, worker, seal, server, held, waiting }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Subject, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self) -> Result<Tx, Error> {
        Ok(self.db.begin(Actor::Worker(self.worker)).await?)
    }

    /// Acquires the lease of a subject, or renews it once a third of it has passed. Returns the
    /// fencing token, or when to retry if another server holds the lease.
    pub(crate) async fn hold(&self, subject: Subject) -> Result<Result<i64, Requeue>, Error> {
        let now = self.db.now();
        if let Some(held) = self.held().get(&subject).filter(|held| held.renew_at > now) {
            return Ok(Ok(held.fence));
        }
        let mut tx = self.begin().await?;
        let fence = store::operation::acquire(&mut tx, subject, &self.server, LEASE).await?;
        let Some(fence) = fence else {
            drop(tx);
            self.remove(subject);
            return Ok(Err(self.soon(RETRY_LEASE)));
        };
        tx.commit().await?;
        let mut all = self.held();
        let held = all.entry(subject).or_insert(Held { fence, renew_at: now, running: None });
        if held.fence != fence {
            held.running = None;
        }
        (held.fence, held.renew_at) = (fence, now + LEASE / 3);
        Ok(Ok(fence))
    }

    /// Releases the lease of a subject in the transaction that ends its step.
    pub(crate) async fn release(&self, tx: &mut Tx, subject: Subject) -> Result<(), Error> {
        self.remove(subject);
        Ok(store::operation::release(tx, subject, &self.server).await?)
    }

    /// Releases the lease of a subject in a transaction of its own.
    pub(crate) async fn release_now(&self, subject: Subject) -> Result<(), Error> {
        let mut tx = self.begin().await?;
        self.release(&mut tx, subject).await?;
        Ok(tx.commit().await?)
    }

    fn remove(&self, subject: Subject) {
        self.held().remove(&subject);
    }

    /// The task of a step whose call is running.
    pub(crate) fn running(&self, subject: Subject, step: &str) -> Option<Arc<Task>> {
        let all = self.held();
        let running = all.get(&subject)?.running.as_ref().filter(|running| running.step == step)?;
        Some(running.task.clone())
    }

    /// Decrypts the secrets of a subject.
    pub(crate) async fn open(
        &self,
        subject: Subject,
    ) -> Result<Result<BTreeMap<String, Secret>, Fault>, Error> {
        let sealed = secret::list(&mut self.db.read().await?, subject).await?;
        let mut open = BTreeMap::new();
        for (name, sealed) in sealed {
            match self.seal.decrypt(&subject.purpose(&name), &sealed).await {
                Ok(secret) => open.insert(name, secret),
                Err(fault) => return Ok(Err(fault)),
            };
        }
        Ok(Ok(open))
    }

    /// Persists the adapter's state and the log, however the last call ended: partially created
    /// objects must not be lost, and what identifies them must be persisted before more is created.
    pub(crate) async fn persist(
        &self,
        operation: &dyn Operation,
        task: &Task,
    ) -> Result<Result<(), Fault>, Error> {
        let kept = match operation.persist(task).await {
            Ok(kept) => kept,
            Err(fault) => return Ok(Err(fault)),
        };
        let sealed = match encrypt_all(&*self.seal, task.id, &kept).await {
            Ok(sealed) => sealed,
            Err(fault) => return Ok(Err(fault)),
        };
        let lines = task.log.drain();
        if lines.is_empty() && sealed.is_empty() {
            return Ok(Ok(()));
        }
        let mut tx = self.begin().await?;
        secret::set(&mut tx, task.id, task.fence, &sealed).await?;
        log::append(&mut tx, task.id, &lines).await?;
        tx.commit().await?;
        self.add_secrets(task.id, kept);
        Ok(Ok(()))
    }

    /// Adds newly persisted secrets to the running task.
    pub(crate) fn add_secrets(&self, subject: Subject, kept: BTreeMap<String, Secret>) {
        if let Some(running) = self.held().get_mut(&subject).and_then(|held| held.running.as_mut())
        {
            Arc::make_mut(&mut running.task).persisted.extend(kept);
        }
    }

    /// Keeps the task of a step in memory until its call ends.
    pub(crate) fn start(&self, task: Task, step: &str) -> Arc<Task> {
        let task = Arc::new(task);
        if let Some(held) = self.held().get_mut(&task.id) {
            held.end();
            let (step, task) = (step.to_owned(), task.clone());
            held.running = Some(Running { step, task, waiter: None });
        }
        task
    }

    /// Ends the call of a step: the next one gets a new task.
    pub(crate) fn end(&self, subject: Subject) {
        if let Some(held) = self.held().get_mut(&subject) {
            held.end();
        }
    }

    /// Wakes the worker when the adapter announces a change. Returns when to poll otherwise.
    pub(crate) fn wait(&self, operation: &Arc<dyn Operation>, subject: Subject) -> Requeue {
        if let Some(running) = self.held().get_mut(&subject).and_then(|held| held.running.as_mut())
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
                tracing::warn!(subject = %task.id, %error, "waking the worker failed, polling");
            }
        })
    }

    pub(crate) fn soon(&self, after: Duration) -> Requeue {
        Requeue::At(self.db.now() + after)
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

/// Encrypts the secrets of a subject, bound to that subject.
pub async fn encrypt_all(
    seal: &dyn Encryption,
    subject: impl Into<Subject>,
    secrets: &BTreeMap<String, Secret>,
) -> Result<BTreeMap<String, String>, Fault> {
    let (subject, mut sealed) = (subject.into(), BTreeMap::new());
    for (name, secret) in secrets {
        sealed.insert(name.clone(), seal.encrypt(&subject.purpose(name), secret).await?);
    }
    Ok(sealed)
}
