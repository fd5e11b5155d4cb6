//! Ports behind a guard: every call of theirs can be repeated, so every call is retried.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::{Invalid, Secret};
use port::{
    Access, Answer, Client, Dns, Files, Observed, Operation, Outcome, Progress, Seal, Sso, Task,
};
use serde_json::{Map, Value};

use super::Guard;

/// An adapter that is asked only through its guard.
#[derive(Debug)]
pub struct Guarded<T> {
    inner: T,
    guard: Arc<Guard>,
}

impl<T> Guarded<T> {
    /// Puts a guard before an adapter. Others keep the guard, too, to show how the system is doing.
    pub fn new(inner: T, guard: Arc<Guard>) -> Self {
        Self { inner, guard }
    }

    /// Its guard.
    pub fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }
}

impl<D: Dns> Dns for Guarded<D> {
    fn point<'a>(&'a self, name: &'a str, target: &'a str) -> Answer<'a, ()> {
        Box::pin(self.guard.call(move || self.inner.point(name, target)))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        Box::pin(self.guard.call(move || self.inner.remove(name)))
    }

    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Option<String>> {
        Box::pin(self.guard.call(move || self.inner.find(name)))
    }
}

impl<S: Sso> Sso for Guarded<S> {
    fn create<'a>(&'a self, name: &'a str) -> Answer<'a, Client> {
        Box::pin(self.guard.call(move || self.inner.create(name)))
    }

    fn find<'a>(&'a self, client: &'a Client) -> Answer<'a, Option<Client>> {
        Box::pin(self.guard.call(move || self.inner.find(client)))
    }

    fn rotate<'a>(&'a self, client: &'a Client) -> Answer<'a, Client> {
        Box::pin(self.guard.call(move || self.inner.rotate(client)))
    }

    fn remove<'a>(&'a self, client: &'a Client) -> Answer<'a, ()> {
        Box::pin(self.guard.call(move || self.inner.remove(client)))
    }
}

impl<S: Seal> Seal for Guarded<S> {
    fn seal<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> Answer<'a, String> {
        Box::pin(self.guard.call(move || self.inner.seal(purpose, secret)))
    }

    fn open<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> Answer<'a, Secret> {
        Box::pin(self.guard.call(move || self.inner.open(purpose, sealed)))
    }
}

impl<E: Operation> Operation for Guarded<E> {
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), Invalid> {
        self.inner.validate(with, files)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        Box::pin(self.guard.call(move || self.inner.plan(task)))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(self.guard.call(move || self.inner.apply(task)))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Observed>> {
        Box::pin(self.guard.call(move || self.inner.observe(task)))
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        Box::pin(self.guard.call(move || self.inner.destroy(task)))
    }

    fn prepare<'a>(&'a self, task: &'a Task, agent: &'a Access) -> Answer<'a, Progress<Outcome>> {
        Box::pin(self.guard.call(move || self.inner.prepare(task, agent)))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        // It stops what goes on here. To the breaker that is no news of the system.
        self.inner.cancel(task)
    }

    fn keep<'a>(&'a self, task: &'a Task) -> Answer<'a, BTreeMap<String, Secret>> {
        // It asks what the executor knows, and must be told also while the system is left alone.
        self.inner.keep(task)
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> Answer<'a, Outcome> {
        Box::pin(self.guard.call(move || self.inner.adopt(task, what)))
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        self.inner.changed(task)
    }
}
