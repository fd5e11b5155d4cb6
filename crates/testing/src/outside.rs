//! In-memory external systems with fault injection.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Secret;
use port::{Dns, Encryption, Fault, PortFuture, Sso, SsoClient};

/// A fake system: its state, and the fault that it returns instead of a response.
#[derive(Default)]
pub struct Fake<T> {
    state: Mutex<T>,
    fault: Mutex<Option<Fault>>,
}

impl<T> Fake<T> {
    /// Its state.
    pub fn state(&self) -> MutexGuard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets or clears the fault of all further calls.
    pub fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    pub(crate) fn answer<'a, R: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut T) -> R,
    ) -> PortFuture<'a, R> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answer = match fault {
            Some(fault) => Err(fault),
            None => Ok(act(&mut self.state())),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Fake DNS: names with their CNAME targets.
pub type FakeDns = Fake<BTreeMap<String, String>>;

impl Dns for FakeDns {
    fn set_cname<'a>(&'a self, name: &'a str, target: &'a str) -> PortFuture<'a, ()> {
        self.answer(|names| drop(names.insert(name.to_owned(), target.to_owned())))
    }

    fn delete_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()> {
        self.answer(|names| drop(names.remove(name)))
    }

    fn get_cname<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<String>> {
        self.answer(|names| names.get(name).cloned())
    }
}

/// Fake SSO: clients with their secrets.
pub type FakeSso = Fake<BTreeMap<String, String>>;

impl Sso for Fake<BTreeMap<String, String>> {
    fn create<'a>(&'a self, name: &'a str) -> PortFuture<'a, SsoClient> {
        self.answer(|clients| {
            let count = clients.len();
            let secret = clients.entry(name.to_owned()).or_insert(format!("secret {count}"));
            client(name, secret)
        })
    }

    fn find<'a>(&'a self, known: &'a SsoClient) -> PortFuture<'a, Option<SsoClient>> {
        self.answer(|clients| clients.get(&known.id).map(|secret| client(&known.id, secret)))
    }

    fn rotate<'a>(&'a self, known: &'a SsoClient) -> PortFuture<'a, SsoClient> {
        self.answer(|clients| {
            let secret = format!("{}'", known.secret.reveal());
            clients.insert(known.id.clone(), secret.clone());
            client(&known.id, &secret)
        })
    }

    fn delete<'a>(&'a self, known: &'a SsoClient) -> PortFuture<'a, ()> {
        self.answer(|clients| drop(clients.remove(&known.id)))
    }
}

fn client(id: &str, secret: &str) -> SsoClient {
    SsoClient { id: id.to_owned(), secret: Secret::new(secret), handle: Secret::new("handle") }
}

/// Fake encryption: reversible by tests, with its purpose in the ciphertext.
pub type FakeSeal = Fake<()>;

impl Encryption for FakeSeal {
    fn encrypt<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> PortFuture<'a, String> {
        let reversed: String = secret.reveal().chars().rev().collect();
        self.answer(|()| format!("sealed:{purpose}: {reversed}"))
    }

    fn decrypt<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> PortFuture<'a, Secret> {
        let Some(reversed) = sealed.strip_prefix(&format!("sealed:{purpose}: ")) else {
            let refused = Fault::Refused(format!("it was not sealed for {purpose}"));
            return Box::pin(std::future::ready(Err(refused)));
        };
        let text: String = reversed.chars().rev().collect();
        self.answer(|()| Secret::new(text))
    }

    fn current_key(&self) -> PortFuture<'_, String> {
        self.answer(|()| "sealed".to_owned())
    }
}
