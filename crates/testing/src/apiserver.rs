//! A server that answers like a kube-apiserver, over real HTTP, for as much as Paddock asks of one.
//!
//! It keeps any object, of kinds that it knows or is told of. It has no controllers: tests play those
//! with [`Controller`]. It records every request and can be told to misbehave.

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
pub use fault::{Fault, Misbehave};
pub use kind::Kind;

use logs::Logs;
use objects::Objects;

/// A request that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// `GET`, `PATCH`, …
    pub method: String,
    /// Its path.
    pub path: String,
    /// What follows the question mark, decoded.
    pub query: Vec<(String, String)>,
    /// Its `Content-Type`.
    pub content_type: String,
    /// Its body, if that is JSON.
    pub body: Value,
}

impl Asked {
    /// A parameter's value.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What all connections share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Raised with every change of what is kept.
    changed: signal::Sender<u64>,
}

#[derive(Default)]
pub(crate) struct State {
    objects: Objects,
    kinds: Vec<Kind>,
    asked: Vec<Asked>,
    faults: Vec<Fault>,
    /// Tokens that are let in; everybody is when there is none.
    tokens: BTreeSet<String>,
    /// What nobody may do: verb, group, resource.
    denied: BTreeSet<(String, String, String)>,
    /// Does nobody finish what is being removed?
    is_lingering: bool,
    /// Is who watches from too long ago answered 410, instead of being told so by an event?
    is_refusing_old: bool,
    logs: Logs,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is kept, and tells who watches.
    pub(crate) fn change<T>(&self, how: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let result = how(&mut state);
        let version = state.objects.version();
        drop(state);
        self.changed.send_replace(version);
        result
    }
}

/// The server; it ends with this.
pub struct Apiserver {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Apiserver {
    /// Starts one that has the namespaces that every Kubernetes has.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let state = State { kinds: kind::known(), ..State::default() };
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

    /// Ends it: its port is closed, every connection and watch is cut. What it keeps stays.
    pub async fn stop(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
    }

    /// Starts it again on the same port, with all that it kept.
    pub async fn again(&self) {
        self.serve(TcpListener::bind(self.address).await.expect("the port was ours"));
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig for it, with that token.
    pub fn kubeconfig(&self, token: &str) -> String {
        let server = self.address();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  \
             cluster: {{server: \"{server}\"}}\nusers:\n- name: test\n  user: {{token: \"{token}\"}}\n\
             contexts:\n- name: test\n  context: {{cluster: test, user: test}}\n"
        )
    }

    /// What controllers, kubelets and other people do there.
    pub fn controller(&self) -> Controller<'_> {
        Controller(&self.shared)
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state().asked.clone()
    }

    /// The requests so far, as `METHOD path`.
    pub fn lines(&self) -> Vec<String> {
        self.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }

    /// Forgets what it was asked.
    pub fn forget(&self) {
        self.shared.state().asked.clear();
    }

    /// Makes requests go wrong from now on, in that order.
    pub fn fault(&self, fault: Fault) {
        self.shared.state().faults.push(fault);
    }

    /// Faults that have not happened to their end.
    pub fn faults_left(&self) -> usize {
        self.shared.state().faults.iter().filter(|fault| fault.times > 0).count()
    }

    /// Lets in who has one of these tokens, and nobody else.
    pub fn set_tokens(&self, tokens: &[&str]) {
        self.shared.state().tokens = tokens.iter().map(|&token| token.to_owned()).collect();
    }

    /// Nobody may do that: a verb, a group and a resource, as RBAC has them.
    pub fn deny(&self, verb: &str, group: &str, resource: &str) {
        self.shared.state().denied.insert((verb.into(), group.into(), resource.into()));
    }

    /// Everybody may do everything again.
    pub fn allow_all(&self) {
        self.shared.state().denied.clear();
    }

    /// Adds a kind, as a CustomResourceDefinition would.
    pub fn define(&self, kind: Kind) {
        self.shared.state().kinds.push(kind);
    }

    /// Whether there are no controllers: namespaces that are deleted stay, terminating, until
    /// [`Controller::finish`], and what is removed after what it owns stays until its finalizers go.
    pub fn linger(&self, is_lingering: bool) {
        self.shared.state().is_lingering = is_lingering;
    }

    /// Whether who watches from too long ago is answered 410; an event says it otherwise.
    pub fn refuse_old(&self, is_refusing_old: bool) {
        self.shared.state().is_refusing_old = is_refusing_old;
    }

    /// Forgets old changes: whoever watches from before now gets 410.
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

/// Serves connections; all of them end with this.
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
