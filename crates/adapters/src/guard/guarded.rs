//! Ports behind a guard: every call of theirs can be repeated, so every call is retried.

use std::sync::Arc;

use engine::port::{Answer, Client, Dns, Seal, Sso};
use model::Secret;

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
