//! Ports behind a guard: all their calls are idempotent, so all are retried.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::{Invalid, Secret};
use port::{
    Access, Dns, Encryption, Files, KeyRing, Observed, Operation, Outcome, PortFuture, Progress,
    Sso, SsoClient, Task,
};
use serde_json::{Map, Value};

use super::Guard;

/// An adapter whose calls go through its guard.
#[derive(Debug)]
pub struct Guarded<T> {
    inner: T,
    guard: Arc<Guard>,
}

impl<T> Guarded<T> {
    /// Wraps an adapter. The guard is shared with the health page.
    pub fn new(inner: T, guard: Arc<Guard>) -> Self {
        Self { inner, guard }
    }

    /// The guard.
    pub fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }
}

impl<D: Dns> Dns for Guarded<D> {
    fn set_cname<'a>(&'a self, name: &'a str, target: &'a str) -> PortFuture<'a, ()> {
        Box::pin(self.guard.call(move || self.inner.set_cname(name, target)))
    }

    fn delete_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()> {
        Box::pin(self.guard.call(move || self.inner.delete_cname(name)))
    }

    fn get_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<String>> {
        Box::pin(self.guard.call(move || self.inner.get_cname(name)))
    }
}

impl<S: Sso> Sso for Guarded<S> {
    fn create<'a>(&'a self, name: &'a str) -> PortFuture<'a, SsoClient> {
        Box::pin(self.guard.call(move || self.inner.create(name)))
    }

    fn find<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, Option<SsoClient>> {
        Box::pin(self.guard.call(move || self.inner.find(client)))
    }

    fn rotate<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, SsoClient> {
        Box::pin(self.guard.call(move || self.inner.rotate(client)))
    }

    fn delete<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, ()> {
        Box::pin(self.guard.call(move || self.inner.delete(client)))
    }
}

impl<S: Encryption> Encryption for Guarded<S> {
    fn encrypt<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> PortFuture<'a, String> {
        Box::pin(self.guard.call(move || self.inner.encrypt(purpose, secret)))
    }

    fn decrypt<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> PortFuture<'a, Secret> {
        Box::pin(self.guard.call(move || self.inner.decrypt(purpose, sealed)))
    }

    fn current_key(&self) -> PortFuture<'_, String> {
        Box::pin(self.guard.call(move || self.inner.current_key()))
    }

    fn key_ring(&self) -> Option<&dyn KeyRing> {
        self.inner.key_ring()
    }
}

impl<E: Operation> Operation for Guarded<E> {
    fn validate(&self, with: &Map<String, Value>, files: &Files) -> Result<(), Invalid> {
        self.inner.validate(with, files)
    }

    fn plan<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        Box::pin(self.guard.call(move || self.inner.plan(task)))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(self.guard.call(move || self.inner.apply(task)))
    }

    fn observe<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        Box::pin(self.guard.call(move || self.inner.observe(task)))
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        Box::pin(self.guard.call(move || self.inner.destroy(task)))
    }

    fn prepare<'a>(
        &'a self,
        task: &'a Task,
        agent: &'a Access,
    ) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(self.guard.call(move || self.inner.prepare(task, agent)))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        // Cancelling only stops local work, which says nothing about the system's health.
        self.inner.cancel(task)
    }

    fn persist<'a>(&'a self, task: &'a Task) -> PortFuture<'a, BTreeMap<String, Secret>> {
        // Only the executor's memory is read, also while the circuit breaker is open.
        self.inner.persist(task)
    }

    fn adopt<'a>(&'a self, task: &'a Task, what: &'a str) -> PortFuture<'a, Outcome> {
        Box::pin(self.guard.call(move || self.inner.adopt(task, what)))
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        self.inner.changed(task)
    }
}
