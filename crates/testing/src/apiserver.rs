//! Fake Kubernetes API server over real HTTP, with the subset of the API that Paddock uses.
//!
//! Stores objects of built-in and custom kinds. Has no controllers: tests play those with
//! [`Controller`]. Records every request and injects faults.

mod answer;
mod apply;
mod controller;
mod discovery;
mod fault;
mod kind;
mod logs;
mod objects;
mod route;
mod serve;
mod verbs;
mod watch;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::task::Tasks;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch as signal;
use tokio::task::JoinHandle;

pub use controller::Controller;
pub use fault::{Fault, FaultKind};
pub use kind::Kind;

use logs::Logs;
use objects::Objects;

/// A recorded request.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// `GET`, `PATCH`, …
    pub method: String,
    /// Its path.
    pub path: String,
    /// The decoded query parameters.
    pub query: Vec<(String, String)>,
    /// Its `Content-Type`.
    pub content_type: String,
    /// Its body, if that is JSON.
    pub body: Value,
}

impl RecordedRequest {
    /// A parameter's value.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// State shared by all connections.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Raised with every change of an object.
    changed: signal::Sender<u64>,
}

#[derive(Default)]
pub(crate) struct State {
    objects: Objects,
    kinds: Vec<Kind>,
    asked: Vec<RecordedRequest>,
    faults: Vec<Fault>,
    /// Accepted tokens; all are accepted if empty.
    tokens: BTreeSet<String>,
    /// Denied operations: verb, group, resource.
    denied: BTreeSet<(String, String, String)>,
    /// Whether no controller completes deletions.
    is_lingering: bool,
    /// Whether an expired watch is rejected with 410 instead of an error event.
    rejects_expired: bool,
    logs: Logs,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes objects and notifies the watches.
    pub(crate) fn change<T>(&self, how: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let result = how(&mut state);
        let version = state.objects.version();
        drop(state);
        self.changed.send_replace(version);
        result
    }
}

/// The server; stopped on drop.
pub struct Apiserver {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Apiserver {
    /// Starts a server with the standard namespaces.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let state = State { kinds: kind::built_in(), ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: signal::channel(0).0 });
        let server = Self { address, shared, task: Mutex::default() };
        for name in ["default", "kube-system"] {
            server.controller().namespace(name);
        }
        server.serve(listener);
        server
    }

    fn serve(&self, listener: TcpListener) {
        let task = base::task::spawn("apiserver", accept(listener, self.shared.clone()));
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Stops it: closes its port, every connection and watch. Objects are retained.
    pub async fn stop(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
    }

    /// Starts it again on the same port, with its objects.
    pub async fn restart(&self) {
        self.serve(TcpListener::bind(self.address).await.expect("the port was ours"));
    }

    /// Its URL.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig with that token.
    pub fn kubeconfig(&self, token: &str) -> String {
        let server = self.address();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  \
             cluster: {{server: \"{server}\"}}\nusers:\n- name: test\n  user: {{token: \"{token}\"}}\n\
             contexts:\n- name: test\n  context: {{cluster: test, user: test}}\n"
        )
    }

    /// Plays controllers, kubelets and other clients.
    pub fn controller(&self) -> Controller<'_> {
        Controller(&self.shared)
    }

    /// The recorded requests.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.state().asked.clone()
    }

    /// The recorded requests, as `METHOD path`.
    pub fn request_lines(&self) -> Vec<String> {
        self.requests().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }

    /// Clears the recorded requests.
    pub fn clear_requests(&self) {
        self.shared.state().asked.clear();
    }

    /// Injects a fault.
    pub fn fault(&self, fault: Fault) {
        self.shared.state().faults.push(fault);
    }

    /// Number of faults that have not occurred completely.
    pub fn faults_left(&self) -> usize {
        self.shared.state().faults.iter().filter(|fault| fault.times > 0).count()
    }

    /// Accepts only these tokens.
    pub fn set_tokens(&self, tokens: &[&str]) {
        self.shared.state().tokens = tokens.iter().map(|&token| token.to_owned()).collect();
    }

    /// Denies a verb on a group and a resource, as RBAC.
    pub fn deny(&self, verb: &str, group: &str, resource: &str) {
        self.shared.state().denied.insert((verb.into(), group.into(), resource.into()));
    }

    /// Allows everything again.
    pub fn allow_all(&self) {
        self.shared.state().denied.clear();
    }

    /// Adds a kind, as a CustomResourceDefinition does.
    pub fn define(&self, kind: Kind) {
        self.shared.state().kinds.push(kind);
    }

    /// Whether controllers are missing: deleted namespaces stay terminating until
    /// [`Controller::finish`], and foreground deletions wait for their finalizers.
    pub fn delay_deletions(&self, is_lingering: bool) {
        self.shared.state().is_lingering = is_lingering;
    }

    /// Whether an expired watch is rejected with 410; otherwise an event reports it.
    pub fn reject_expired(&self, rejects_expired: bool) {
        self.shared.state().rejects_expired = rejects_expired;
    }

    /// Drops the history: a watch from an older version gets 410.
    pub fn compact(&self) {
        self.shared.state().objects.compact();
    }
}

impl Drop for Apiserver {
    fn drop(&mut self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// Serves connections; all end with this future.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let router = serve::router(shared);
    let mut connections = Tasks::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let service = TowerToHyperService::new(router.clone());
        connections.spawn("connection", async move {
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
