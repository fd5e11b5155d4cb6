//! What the workers of environments ask of whoever carries out resources.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::resource::{Difference, Link};
use model::{EnvironmentId, OrganizationId, ResourceId, Secret, Time, UserId};
use serde_json::{Map, Value};

use super::Answer;

/// Files that were published with a template, by their paths.
pub type Files = Arc<BTreeMap<String, Vec<u8>>>;

/// One resource, as its executor sees it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id: what is made for it is named after it, so that a repeated call finds its own work.
    pub id: ResourceId,
    /// Its name in the environment.
    pub name: String,
    /// The environment.
    pub environment: EnvironmentId,
    /// The environment's name.
    pub environment_name: String,
    /// Whose it is.
    pub organization: OrganizationId,
    /// In whose name it is made.
    pub user: UserId,
    /// What it shall be: `with`, without expressions.
    pub with: Map<String, Value>,
    /// What it was last made as.
    pub applied: Option<Map<String, Value>>,
    /// What it gave last time.
    pub outputs: Map<String, Value>,
    /// What of Paddock's own was made for it.
    pub link: Option<Link>,
    /// Files of its template.
    pub files: Files,
    /// What the executor had us keep, by name.
    pub kept: BTreeMap<String, Secret>,
    /// The same for every try of the same change, another one for the next change, and when somebody has
    /// what failed be tried again.
    pub key: String,
    /// Since when its step goes on: what failed before that failed in an earlier try.
    pub since: Time,
    /// Grows whenever another server takes over. Whoever has an older one must change nothing more.
    pub fence: i64,
    /// Where to say what goes on.
    pub log: Log,
}

/// Lines that were said while a resource was made. Nothing secret may be in them.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Says something; a text of several lines is several.
    pub fn say(&self, text: impl AsRef<str>) {
        let lines = text.as_ref().lines().map(str::to_owned);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
    }

    /// What was said since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How far a step is.
#[derive(Debug, Clone, PartialEq)]
pub enum Doing<T> {
    /// It goes on by itself; it is asked again soon.
    Going {
        /// What it waits for, as a sentence.
        words: String,
        /// How much is done, in percent, if that is known.
        percent: Option<u8>,
    },
    /// Done.
    Done(T),
}

/// What came of making or changing a resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Applied {
    /// What it gives to others. Nothing secret may be in it.
    pub outputs: Map<String, Value>,
    /// What of Paddock's own was made for it.
    pub link: Option<Link>,
}

/// What a resource is found to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// What is not as it was made. Nothing secret may be in it.
    pub drift: Vec<Difference>,
    /// What is there beside it and was not made by Paddock.
    pub unexpected: Vec<String>,
}

/// Carries out resources of one kind.
///
/// Every call can be repeated and finds its own work, also that of a server that is no more. A call
/// that takes long says [`Doing::Going`] and goes on in the background.
/// [`Fault::Refused`](super::Fault::Refused) means that the resource failed, until somebody has it be
/// tried again; [`Fault::Unavailable`](super::Fault::Unavailable) is tried again by itself.
pub trait Executor: Send + Sync {
    /// Can it be told this? Nothing foreign is asked.
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), model::Invalid>;

    /// What would change, field by field. Nothing is changed.
    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Doing<Vec<Difference>>>;

    /// Has it be as it should.
    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Doing<Applied>>;

    /// What it is, compared with what it was made as (`task.applied`).
    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Observed>;

    /// Takes away all that was made. Done means that nothing is left.
    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Doing<()>>;

    /// Stops what goes on for it; true when nothing goes on any more. Asked again until then.
    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        let _ = task;
        Box::pin(std::future::ready(Ok(true)))
    }

    /// What shall be kept by now, encrypted, and is not among `task.kept` yet. Asked for after every
    /// other call, also after one that failed: what was made half-way must not be forgotten.
    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        let _ = task;
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    /// Takes over what exists already and was made by somebody else, named as the executor names such
    /// things. Nothing is changed. The next apply brings it to what it should be.
    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Applied> {
        let _ = (task, what);
        let no = super::Fault::Refused("this executor can't take over what exists".into());
        Box::pin(std::future::ready(Err(no)))
    }
}
