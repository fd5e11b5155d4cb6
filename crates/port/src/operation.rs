//! Long-running work on external systems: clusters that providers create, and resources of
//! environments.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use model::operation::Subject;
use model::resource::{Difference, Link, Reason};
use model::{EnvironmentId, Invalid, OrganizationId, ReplicaId, Secret, Time, UserId};
use serde_json::{Map, Value};

use super::{Fault, PortFuture, ready};

/// Files that were published with a template, by their paths.
pub type Files = Arc<BTreeMap<String, Vec<u8>>>;

/// One cluster or resource, as an adapter sees it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id. Objects that are created for it are named after it, so that a repeated call finds
    /// them.
    pub id: Subject,
    /// Its name; a resource's in its environment.
    pub name: String,
    /// The owning organization; none if all organizations share it.
    pub organization: Option<OrganizationId>,
    /// The environment of a resource.
    pub environment: Option<Environment>,
    /// Its desired state: a resource's `with` without expressions, a cluster's provider settings.
    pub with: Map<String, Value>,
    /// The desired state that was last applied.
    pub applied: Option<Map<String, Value>>,
    /// The outputs of the last apply.
    pub outputs: Map<String, Value>,
    /// The Paddock subject that was created for it.
    pub link: Option<Link>,
    /// Files of its template.
    pub files: Files,
    /// Secret settings from the user and what the adapter persisted ([`Operation::persist`]), by name.
    pub persisted: BTreeMap<String, Secret>,
    /// The organization's own credentials of the external system, by name; empty if it uses the
    /// platform's.
    pub credentials: BTreeMap<String, Secret>,
    /// Idempotency key: the same for every attempt of one change, a new one for the next change and
    /// after a manual retry.
    pub key: String,
    /// When its step began: earlier failures belong to an earlier attempt.
    pub since: Time,
    /// The fencing token. It grows whenever another server takes over; a holder of an older token
    /// must not change anything.
    pub fence: i64,
    /// The operation's log.
    pub log: Log,
}

/// The environment of a resource.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Its id.
    pub id: EnvironmentId,
    /// Its name.
    pub name: String,
    /// The user as whom its resources are created.
    pub user: UserId,
}

impl Task {
    /// A subject with no desired state, for which nothing was created yet.
    pub fn new(id: impl Into<Subject>, name: &str) -> Self {
        let id = id.into();
        Self {
            id,
            name: name.to_owned(),
            organization: None,
            environment: None,
            with: Map::new(),
            applied: None,
            outputs: Map::new(),
            link: None,
            files: Files::default(),
            persisted: BTreeMap::new(),
            credentials: BTreeMap::new(),
            key: id.to_string(),
            since: Time(0),
            fence: 1,
            log: Log::default(),
        }
    }
}

/// How the agent of a cluster reaches this server.
#[derive(Debug, Clone)]
pub struct Access {
    /// The server's address as seen from the cluster.
    pub server: String,
    /// The agent's token.
    pub token: Secret,
    /// The image that holds the agent.
    pub image: String,
}

/// Log lines of an operation that are not persisted yet. They must not contain secrets.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Appends a message; each of its lines becomes a log line.
    pub fn append(&self, text: impl AsRef<str>) {
        let lines = text.as_ref().lines().map(str::to_owned);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
    }

    /// Removes and returns the lines since the last call.
    pub fn drain(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<T> {
    /// Continues in the background: call again when [`Operation::changed`] resolves.
    Running {
        /// What the call is waiting for.
        reason: Reason,
        /// Completion in percent, if known.
        percent: Option<u8>,
    },
    /// Succeeded.
    Done(T),
}

impl<T> Progress<T> {
    /// Running, with a message of the external system and an unknown percentage.
    pub fn running(message: impl Into<String>) -> Self {
        Self::pending(Reason::Progressing { message: message.into() })
    }

    /// Running, with an unknown percentage.
    pub fn pending(reason: Reason) -> Self {
        Progress::Running { reason, percent: None }
    }

    /// Sets the percentage.
    pub fn at(self, percent: Option<u8>) -> Self {
        match self {
            Progress::Running { reason, .. } => Progress::Running { reason, percent },
            done @ Progress::Done(_) => done,
        }
    }

    /// Maps the result.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Progress<U> {
        match self {
            Progress::Running { reason, percent } => Progress::Running { reason, percent },
            Progress::Done(done) => Progress::Done(f(done)),
        }
    }
}

/// The output of a cluster: the id that its external system gives it.
pub const CLUSTER_ID: &str = "id";
/// The output of a cluster: the DNS name under which its workloads are reached.
pub const CLUSTER_DNS: &str = "dns";

/// The result of creating or updating a subject.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Its outputs. They must not contain secrets.
    pub outputs: Map<String, Value>,
    /// The Paddock subject that was created for it.
    pub link: Option<Link>,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Differences from the applied state. They must not contain secrets.
    pub drift: Vec<Difference>,
    /// Objects in the same place that Paddock did not create.
    pub unexpected: Vec<String>,
    /// The outcome of the last apply; none if it is unknown or no apply finished.
    pub outcome: Option<Outcome>,
}

/// Creates, updates, observes and destroys clusters or resources of one kind.
///
/// Every call is idempotent and finds the work of an earlier one, also that of a crashed server. A
/// call that takes long returns [`Progress::Running`] and continues in the background.
/// [`Fault::Refused`] fails the subject until a manual retry; [`Fault::Unavailable`] is retried
/// automatically.
pub trait Operation: Send + Sync {
    /// Validates a desired state without calling the external system.
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), Invalid>;

    /// The differences that an apply would change, field by field.
    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>>;

    /// Creates the subject or updates it to its desired state.
    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>>;

    /// Compares the subject with the applied state. Read-only.
    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>>;

    /// Deletes everything that was created. `Done` means that nothing is left.
    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>>;

    /// Installs what a cluster needs to host workloads, its agent above all. Also called while the
    /// cluster is ready, to repair drift.
    fn prepare<'a>(&'a self, _: &'a Task, _: &'a Access) -> PortFuture<'a, Progress<Outcome>> {
        ready(Err(Fault::Refused("this provider cannot install an agent".into())))
    }

    /// Prepares namespaces of a cluster for instances, each with the replica that runs there. The
    /// cluster's agent may write in these and in no others but its own.
    fn admit_instances<'a>(
        &'a self,
        _: &'a Task,
        _: &'a BTreeMap<String, ReplicaId>,
    ) -> PortFuture<'a, ()> {
        ready(Ok(()))
    }

    /// Adopts an existing object that others created, named as the external system names it.
    /// Read-only; the next apply brings the object to its desired state.
    fn adopt<'a>(&'a self, _: &'a Task, _: &'a str) -> PortFuture<'a, Outcome> {
        ready(Err(Fault::Refused("this executor cannot adopt existing objects".into())))
    }

    /// Cancels the running call; true once nothing runs. Called again until then.
    fn cancel<'a>(&'a self, _: &'a Task) -> PortFuture<'a, bool> {
        ready(Ok(true))
    }

    /// Values to persist, encrypted, that `task.persisted` does not contain yet. Called after every
    /// other call, also after a failed one: a half-finished creation must not be lost.
    fn persist<'a>(&'a self, _: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        ready(Ok(BTreeMap::new()))
    }

    /// Resolves when another call is worthwhile: a process exited or wrote output, a request ended.
    /// An adapter that can't tell never resolves; the caller polls every few seconds anyway.
    fn changed<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
}
