//! Fake Vault over real HTTP, with the subset of its documented API that Paddock uses: KV of both
//! versions, tokens with policies and expiry, AppRole, PKI, the seal.
//!
//! Certificates are meaningless texts. The server uses the test's clock, records every request, and
//! can lose a call before or after carrying it out, delay it, or change a secret just before it.

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

/// The root token.
pub const ROOT: &str = "root-t0ken";

/// How a call is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// It is not carried out.
    Before,
    /// It is carried out, but its response is lost.
    After,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `GET`, `POST`, …
    pub method: String,
    /// Its path, without `/v1/`.
    pub path: String,
    /// Its token.
    pub token: String,
    /// Its namespace.
    pub namespace: String,
}

/// State of the server.
pub(crate) struct State {
    clock: Arc<TestClock>,
    tokens: BTreeMap<String, Token>,
    roles: BTreeMap<String, Role>,
    /// Secrets of KV version 1 and 2, by mount and path.
    kv1: BTreeMap<String, Map<String, Value>>,
    kv2: BTreeMap<String, Entry>,
    issued: usize,
    revoked: Vec<String>,
    is_sealed: bool,
    has_mounts: bool,
    has_patch: bool,
    calls: Vec<Call>,
    lost: Option<(usize, Lost)>,
    /// A concurrent write, and the call that it precedes.
    concurrent_write: Option<(usize, String, Map<String, Value>)>,
    held: Option<(usize, Hold)>,
    logins: usize,
}

/// A delayed call.
#[derive(Clone, Default)]
pub struct Hold {
    arrived: Arc<Notify>,
    released: Arc<Notify>,
}

impl Hold {
    /// Waits until the call has arrived.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Lets it continue.
    pub fn release(&self) {
        self.released.notify_one();
    }
}

impl State {
    fn now(&self) -> Time {
        base::Clock::now(&*self.clock)
    }

    /// Writes a secret directly.
    fn put(&mut self, path: String, values: Map<String, Value>) {
        if path.starts_with("kv/") {
            self.kv1.insert(path, values);
        } else {
            self.kv2.entry(path).or_default().versions.push(Some(values));
        }
    }
}

/// The server; stopped on drop.
pub struct Vault {
    address: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Vault {
    /// Starts a server with KV version 2 at `secret`, version 1 at `kv`, and PKI at `pki`.
    pub async fn start(clock: Arc<TestClock>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let state = State {
            clock,
            tokens: BTreeMap::from([(ROOT.to_owned(), Token::root())]),
            roles: BTreeMap::new(),
            kv1: BTreeMap::new(),
            kv2: BTreeMap::new(),
            issued: 0,
            revoked: Vec::new(),
            is_sealed: false,
            has_mounts: true,
            has_patch: true,
            calls: Vec::new(),
            lost: None,
            concurrent_write: None,
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

    /// Its URL.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recorded requests.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// The recorded requests, as `METHOD path`.
    pub fn request_lines(&self) -> Vec<String> {
        self.calls().iter().map(|call| format!("{} {}", call.method, call.path)).collect()
    }

    /// Clears the recorded requests.
    pub fn clear_requests(&self) {
        self.state().calls.clear();
    }

    /// Loses one call: the next is 0.
    pub fn lose(&self, nth: usize, how: Lost) {
        let mut state = self.state();
        let at = state.calls.len() + nth;
        state.lost = Some((at, how));
    }

    /// Whether the call to be lost is still to come.
    pub fn has_pending_loss(&self) -> bool {
        self.state().lost.is_some()
    }

    /// Delays one call before it is carried out: the next is 0.
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

    /// Whether it reports its mounts, as Vault does by default.
    pub fn set_reports_mounts(&self, has_mounts: bool) {
        self.state().has_mounts = has_mounts;
    }

    /// Whether it supports `PATCH`, as current versions do.
    pub fn set_supports_patch(&self, has_patch: bool) {
        self.state().has_patch = has_patch;
    }

    /// Creates a token with these rules and this lifetime in seconds (0: unlimited).
    pub fn create_token(&self, name: &str, rules: &[Rule], seconds: u64, is_renewable: bool) {
        let mut state = self.state();
        let now = state.now();
        let token = Token::new(now, rules.to_vec(), seconds, 0, is_renewable);
        state.tokens.insert(name.to_owned(), token);
    }

    /// Revokes a token.
    pub fn revoke_token(&self, name: &str) {
        self.state().tokens.remove(name);
    }

    /// Creates a role of AppRole.
    pub fn create_role(&self, role_id: &str, role: Role) {
        self.state().roles.insert(role_id.to_owned(), role);
    }

    /// The newest values at a path, such as `secret/shop/db` or `kv/shop/db`.
    pub fn secret(&self, path: &str) -> Option<Map<String, Value>> {
        let state = self.state();
        let kv1 = state.kv1.get(path).cloned();
        kv1.or_else(|| state.kv2.get(path).and_then(Entry::newest).cloned())
    }

    /// Writes a secret, as another client does.
    pub fn put(&self, path: &str, values: &Value) {
        let values = values.as_object().expect("a secret is an object").clone();
        self.state().put(path.to_owned(), values);
    }

    /// Writes a secret just before a call: the next is 0.
    pub fn put_before(&self, nth: usize, path: &str, values: &Value) {
        let values = values.as_object().expect("a secret is an object").clone();
        let mut state = self.state();
        let at = state.calls.len() + nth;
        state.concurrent_write = Some((at, path.to_owned(), values));
    }

    /// Deletes the newest version, as another client does.
    pub fn delete(&self, path: &str) {
        let mut state = self.state();
        state.kv1.remove(path);
        if let Some(newest) = state.kv2.get_mut(path).and_then(|entry| entry.versions.last_mut()) {
            *newest = None;
        }
    }

    /// Number of versions.
    pub fn versions(&self, path: &str) -> usize {
        self.state().kv2.get(path).map_or(0, |entry| entry.versions.len())
    }

    /// The custom metadata.
    pub fn custom_metadata(&self, path: &str) -> Map<String, Value> {
        self.state().kv2.get(path).map(|entry| entry.custom.clone()).unwrap_or_default()
    }

    /// Writes custom metadata, as another client does.
    pub fn set_custom_metadata(&self, path: &str, key: &str, value: &str) {
        let mut state = self.state();
        let entry = state.kv2.entry(path.to_owned()).or_default();
        entry.custom.insert(key.to_owned(), value.into());
    }

    /// Paths of all secrets.
    pub fn paths(&self) -> Vec<String> {
        let state = self.state();
        state.kv1.keys().chain(state.kv2.keys()).cloned().collect()
    }

    /// Number of certificates issued.
    pub fn issued(&self) -> usize {
        self.state().issued
    }

    /// Serial numbers of revoked certificates.
    pub fn revoked(&self) -> Vec<String> {
        self.state().revoked.clone()
    }
}

impl Drop for Vault {
    fn drop(&mut self) {
        self.task.abort();
    }
}
