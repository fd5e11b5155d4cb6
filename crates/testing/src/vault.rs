//! A server that answers as Vault's API is documented, over real HTTP, for as much as Paddock asks of
//! one: KV of both versions, tokens with policies and an end, AppRole, PKI, the seal.
//!
//! Its certificates are texts without meaning. It records every request, runs by the test's clock, can
//! lose any one call, before or after it was carried out, have it wait, and be meddled with before it.

mod auth;
mod kv;
mod pki;
mod serve;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Time;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::TestClock;

pub use auth::{Role, Rule};

use auth::Token;
use kv::Entry;

/// The token that may do everything.
pub const ROOT: &str = "root-t0ken";

/// How a call gets lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Nothing is done.
    Before,
    /// It is carried out, and the answer never arrives.
    After,
}

/// A request that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `GET`, `POST`, …
    pub method: String,
    /// Its path, without `/v1/`.
    pub path: String,
    /// The token that it came with.
    pub token: String,
    /// The namespace that it named.
    pub namespace: String,
}

/// What the server holds.
pub(crate) struct State {
    clock: Arc<TestClock>,
    tokens: BTreeMap<String, Token>,
    roles: BTreeMap<String, Role>,
    /// What is in version 1 and 2 of KV, by mount and path.
    one: BTreeMap<String, Map<String, Value>>,
    two: BTreeMap<String, Entry>,
    issued: usize,
    revoked: Vec<String>,
    is_sealed: bool,
    has_mounts: bool,
    has_patch: bool,
    calls: Vec<Call>,
    lost: Option<(usize, Lost)>,
    /// What somebody writes by hand, just before which call.
    meddling: Option<(usize, String, Map<String, Value>)>,
    held: Option<(usize, Hold)>,
    logins: usize,
}

/// A call that waits at the door.
#[derive(Clone, Default)]
pub struct Hold {
    arrived: Arc<Notify>,
    released: Arc<Notify>,
}

impl Hold {
    /// Waits until the call has come.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Lets it in.
    pub fn release(&self) {
        self.released.notify_one();
    }
}

impl State {
    fn now(&self) -> Time {
        base::Clock::now(&*self.clock)
    }

    /// Writes there, as somebody does by hand.
    fn put(&mut self, place: String, values: Map<String, Value>) {
        if place.starts_with("kv/") {
            self.one.insert(place, values);
        } else {
            self.two.entry(place).or_default().versions.push(Some(values));
        }
    }
}

/// The server; it ends with this.
pub struct Vault {
    address: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Vault {
    /// Starts one with version 2 of KV at `secret`, version 1 at `kv`, and PKI at `pki`.
    pub async fn start(clock: Arc<TestClock>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let state = State {
            clock,
            tokens: BTreeMap::from([(ROOT.to_owned(), Token::root())]),
            roles: BTreeMap::new(),
            one: BTreeMap::new(),
            two: BTreeMap::new(),
            issued: 0,
            revoked: Vec::new(),
            is_sealed: false,
            has_mounts: true,
            has_patch: true,
            calls: Vec::new(),
            lost: None,
            meddling: None,
            held: None,
            logins: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let router = serve::router(state.clone());
        let task = base::task::spawn("vault", async move {
            axum::serve(listener, router).await.expect("it serves until it is aborted");
        });
        Self { address, state, task }
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it was asked so far.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// The requests so far, as `METHOD path`.
    pub fn lines(&self) -> Vec<String> {
        self.calls().iter().map(|call| format!("{} {}", call.method, call.path)).collect()
    }

    /// Forgets what it was asked.
    pub fn forget(&self) {
        self.state().calls.clear();
    }

    /// Loses one call: the first from now is 0.
    pub fn lose(&self, nth: usize, how: Lost) {
        let mut state = self.state();
        let at = state.calls.len() + nth;
        state.lost = Some((at, how));
    }

    /// Is the call that shall get lost still to come?
    pub fn is_losing(&self) -> bool {
        self.state().lost.is_some()
    }

    /// Has one call wait before anything of it is done: the first from now is 0.
    pub fn hold(&self, nth: usize) -> Hold {
        let (mut state, hold) = (self.state(), Hold::default());
        let at = state.calls.len() + nth;
        state.held = Some((at, hold.clone()));
        hold
    }

    /// Seals or unseals it.
    pub fn seal(&self, is_sealed: bool) {
        self.state().is_sealed = is_sealed;
    }

    /// Whether it tells what is mounted where, as Vaults do by default.
    pub fn tell_mounts(&self, has_mounts: bool) {
        self.state().has_mounts = has_mounts;
    }

    /// Whether it knows `PATCH`, as Vaults of today do.
    pub fn know_patch(&self, has_patch: bool) {
        self.state().has_patch = has_patch;
    }

    /// Makes a token that may do what the rules say, for so many seconds (0: for ever).
    pub fn make_token(&self, name: &str, rules: &[Rule], seconds: u64, is_renewable: bool) {
        let mut state = self.state();
        let now = state.now();
        let token = Token::new(now, rules.to_vec(), seconds, 0, is_renewable);
        state.tokens.insert(name.to_owned(), token);
    }

    /// Revokes a token.
    pub fn revoke_token(&self, name: &str) {
        self.state().tokens.remove(name);
    }

    /// Makes a role of AppRole.
    pub fn make_role(&self, role_id: &str, role: Role) {
        self.state().roles.insert(role_id.to_owned(), role);
    }

    /// The newest values at a place, such as `secret/shop/db` or `kv/shop/db`.
    pub fn secret(&self, place: &str) -> Option<Map<String, Value>> {
        let state = self.state();
        let one = state.one.get(place).cloned();
        one.or_else(|| state.two.get(place).and_then(Entry::newest).cloned())
    }

    /// Writes there, as somebody does by hand.
    pub fn put(&self, place: &str, values: &Value) {
        let values = values.as_object().expect("a secret is an object").clone();
        self.state().put(place.to_owned(), values);
    }

    /// The same, just before a call: the first from now is 0.
    pub fn put_before(&self, nth: usize, place: &str, values: &Value) {
        let values = values.as_object().expect("a secret is an object").clone();
        let mut state = self.state();
        let at = state.calls.len() + nth;
        state.meddling = Some((at, place.to_owned(), values));
    }

    /// Deletes the newest version, as somebody does by hand.
    pub fn delete(&self, place: &str) {
        let mut state = self.state();
        state.one.remove(place);
        if let Some(newest) = state.two.get_mut(place).and_then(|entry| entry.versions.last_mut()) {
            *newest = None;
        }
    }

    /// How many versions there are.
    pub fn versions(&self, place: &str) -> usize {
        self.state().two.get(place).map_or(0, |entry| entry.versions.len())
    }

    /// The custom metadata there.
    pub fn custom_metadata(&self, place: &str) -> Map<String, Value> {
        self.state().two.get(place).map(|entry| entry.custom.clone()).unwrap_or_default()
    }

    /// Writes custom metadata, as somebody does by hand.
    pub fn set_custom_metadata(&self, place: &str, key: &str, value: &str) {
        let mut state = self.state();
        let entry = state.two.entry(place.to_owned()).or_default();
        entry.custom.insert(key.to_owned(), value.into());
    }

    /// All places that hold anything.
    pub fn places(&self) -> Vec<String> {
        let state = self.state();
        state.one.keys().chain(state.two.keys()).cloned().collect()
    }

    /// How many certificates were issued.
    pub fn issued(&self) -> usize {
        self.state().issued
    }

    /// The serial numbers of certificates that were revoked.
    pub fn revoked(&self) -> Vec<String> {
        self.state().revoked.clone()
    }
}

impl Drop for Vault {
    fn drop(&mut self) {
        self.task.abort();
    }
}
