//! Long-running work on external systems: clusters that providers create, and resources of environments.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use model::operation::Subject;
use model::resource::{Difference, Link, Reason};
use model::{EnvironmentId, Invalid, OrganizationId, Secret, Time, UserId};
use serde_json::{Map, Value};

use super::{Answer, Fault, ready};

/// Files that were published with a template, by their paths.
pub type Files = Arc<BTreeMap<String, Vec<u8>>>;

/// One cluster or resource, as the adapter sees it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id. What is created for it is named after it, so that a repeated call finds its own work.
    pub id: Subject,
    /// Its name; a resource's in its environment.
    pub name: String,
    /// Who owns it; none if all organizations share it.
    pub organization: Option<OrganizationId>,
    /// The environment of a resource.
    pub environment: Option<Environment>,
    /// Its desired state: a resource's `with` without expressions, a cluster's provider settings.
    pub with: Map<String, Value>,
    /// The desired state that was last applied.
    pub applied: Option<Map<String, Value>>,
    /// The outputs of the last apply.
    pub outputs: Map<String, Value>,
    /// The subject of Paddock's own that was created for it.
    pub link: Option<Link>,
    /// Files of its template.
    pub files: Files,
    /// What the user gave that is secret, and what the adapter persisted ([`Operation::keep`]), by name.
    pub kept: BTreeMap<String, Secret>,
    /// The same for every try of the same change, another one for the next change, and when somebody
    /// retries what failed.
    pub key: String,
    /// When its step began: what failed before that failed in an earlier try.
    pub since: Time,
    /// The fencing token. It grows whenever another server takes over; a holder of an older one must
    /// change nothing more.
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
    /// In whose name its resources are created.
    pub user: UserId,
}

impl Task {
    /// A subject for which nothing was created yet, with no desired state.
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
            kept: BTreeMap::new(),
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

/// Log lines of an operation that are not persisted yet. Nothing secret may be in them.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Adds a line; a text of several lines is several.
    pub fn say(&self, text: impl AsRef<str>) {
        let lines = text.as_ref().lines().map(str::to_owned);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
    }

    /// Takes the lines since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<T> {
    /// It continues in the background: ask again when [`Operation::changed`] resolves.
    Running {
        /// What it waits for.
        reason: Reason,
        /// How much is done, in percent, if that is known.
        percent: Option<u8>,
    },
    /// It has succeeded.
    Done(T),
}

impl<T> Progress<T> {
    /// Running, in the words of an external system, with an unknown percentage.
    pub fn running(message: impl Into<String>) -> Self {
        Self::pending(Reason::Progressing { message: message.into() })
    }

    /// Running, with an unknown percentage.
    pub fn pending(reason: Reason) -> Self {
        Progress::Running { reason, percent: None }
    }

    /// The same with a percentage.
    pub fn at(self, percent: Option<u8>) -> Self {
        match self {
            Progress::Running { reason, .. } => Progress::Running { reason, percent },
            done @ Progress::Done(_) => done,
        }
    }

    /// The result with its type changed.
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

/// The result of creating or changing something.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Its outputs. Nothing secret may be in them.
    pub outputs: Map<String, Value>,
    /// The subject of Paddock's own that was created for it.
    pub link: Option<Link>,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// What is not as it was applied. Nothing secret may be in it.
    pub drift: Vec<Difference>,
    /// What exists beside it and was not created by Paddock.
    pub unexpected: Vec<String>,
    /// What the last apply gave; none if that is not known, or no apply came to its end.
    pub outcome: Option<Outcome>,
}

/// Creates, changes, observes and destroys clusters or resources of one kind.
///
/// Every call can be repeated and finds its own work, also that of a server that is gone. A call that takes
/// long answers [`Progress::Running`] and continues in the background. [`Fault::Refused`] fails the subject
/// until somebody retries; [`Fault::Unavailable`] is retried automatically.
pub trait Operation: Send + Sync {
    /// Checks a desired state without asking the external system.
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), Invalid>;

    /// What an apply would change, field by field.
    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>>;

    /// Creates it or brings it to its desired state.
    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>>;

    /// Compares it with what was applied. Changes nothing.
    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>>;

    /// Removes everything that was created. Done means that nothing is left.
    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>>;

    /// Installs what a cluster needs to host workloads, its agent above all. Also called while the cluster
    /// is ready, to repair what others changed.
    fn prepare<'a>(&'a self, _: &'a Task, _: &'a Access) -> Answer<'a, Progress<Outcome>> {
        ready(Err(Fault::Refused("no agent can be installed there".into())))
    }

    /// Adopts what exists already and was created by others, named as the external system names it.
    /// Changes nothing; the next apply brings it to its desired state.
    fn adopt<'a>(&'a self, _: &'a Task, _: &'a str) -> Answer<'a, Outcome> {
        ready(Err(Fault::Refused("this executor can't take over what exists".into())))
    }

    /// Stops what is under way for it; true once nothing is. Called again until then.
    fn cancel<'a>(&'a self, _: &'a Task) -> Answer<'a, bool> {
        ready(Ok(true))
    }

    /// What to persist, encrypted, that is not among `task.kept` yet. Called after every other call, also
    /// after one that failed: what was created half-way must not be lost.
    fn keep<'a>(&'a self, _: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        ready(Ok(BTreeMap::new()))
    }

    /// Resolves when it is worth asking again: a process has exited or written output, a call has ended.
    /// What can't tell never resolves; it is asked again every few seconds anyway.
    fn changed<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
}
