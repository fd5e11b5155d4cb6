//! Foreign systems in memory, which can be told to be down: for where a fault must be injected.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Secret;
use port::{Answer, Client, Dns, Fault, Seal, Sso};

/// What a fake system holds, and what it answers instead while it is not well.
#[derive(Default)]
pub struct Fake<T> {
    held: Mutex<T>,
    fault: Mutex<Option<Fault>>,
}

impl<T> Fake<T> {
    /// What it holds.
    pub fn held(&self) -> MutexGuard<'_, T> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it answers so, or (with none) as it should.
    pub fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    pub(crate) fn answer<'a, R: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut T) -> R,
    ) -> Answer<'a, R> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answer = match fault {
            Some(fault) => Err(fault),
            None => Ok(act(&mut self.held())),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// A name server: names and what they are aliases of.
pub type FakeDns = Fake<BTreeMap<String, String>>;

impl Dns for FakeDns {
    fn point<'a>(&'a self, name: &'a str, target: &'a str) -> Answer<'a, ()> {
        self.answer(|names| drop(names.insert(name.to_owned(), target.to_owned())))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.answer(|names| drop(names.remove(name)))
    }

    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Option<String>> {
        self.answer(|names| names.get(name).cloned())
    }
}

/// An OpenID provider: clients and their secrets.
pub type FakeSso = Fake<BTreeMap<String, String>>;

impl Sso for Fake<BTreeMap<String, String>> {
    fn create<'a>(&'a self, name: &'a str) -> Answer<'a, Client> {
        self.answer(|clients| {
            let count = clients.len();
            let secret = clients.entry(name.to_owned()).or_insert(format!("secret {count}"));
            client(name, secret)
        })
    }

    fn find<'a>(&'a self, seen: &'a Client) -> Answer<'a, Option<Client>> {
        self.answer(|clients| clients.get(&seen.id).map(|secret| client(&seen.id, secret)))
    }

    fn rotate<'a>(&'a self, seen: &'a Client) -> Answer<'a, Client> {
        self.answer(|clients| {
            let secret = format!("{}'", seen.secret.reveal());
            clients.insert(seen.id.clone(), secret.clone());
            client(&seen.id, &secret)
        })
    }

    fn remove<'a>(&'a self, seen: &'a Client) -> Answer<'a, ()> {
        self.answer(|clients| drop(clients.remove(&seen.id)))
    }
}

fn client(id: &str, secret: &str) -> Client {
    Client { id: id.to_owned(), secret: Secret::new(secret), handle: Secret::new("handle") }
}

/// Seals so that tests can tell what was sealed from what was not, and for what.
pub type FakeSeal = Fake<()>;

impl Seal for FakeSeal {
    fn seal<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> Answer<'a, String> {
        let turned: String = secret.reveal().chars().rev().collect();
        self.answer(|()| format!("sealed for {purpose}: {turned}"))
    }

    fn open<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> Answer<'a, Secret> {
        let Some(turned) = sealed.strip_prefix(&format!("sealed for {purpose}: ")) else {
            let refused = Fault::Refused(format!("it was not sealed for {purpose}"));
            return Box::pin(std::future::ready(Err(refused)));
        };
        let text: String = turned.chars().rev().collect();
        self.answer(|()| Secret::new(text))
    }
}
