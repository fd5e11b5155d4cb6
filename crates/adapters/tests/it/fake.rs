//! HTTP servers in a test, for unavailable systems and faults that real ones don't produce on
//! demand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request that a fake received.
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) headers: HeaderMap,
    /// JSON, or the fields of a form.
    pub(crate) body: Value,
}

impl Received {
    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The method and the path segments, for matching.
    pub(crate) fn route(&self) -> (&str, Vec<&str>) {
        (&self.method, self.path.split('/').skip(1).collect())
    }
}

/// How a fake behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    Normal,
    /// Answers after the caller's timeout.
    Slow,
    /// Answers 200 with HTML.
    Garbage,
    /// Answers with too many bytes.
    Endless,
    /// Answers every request with this status.
    Status(u16),
}

type Answer = dyn Fn(&Received) -> (u16, Value) + Send + Sync;

/// A server on loopback; dropping it stops it.
pub(crate) struct Fake {
    pub(crate) address: String,
    state: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    behavior: Mutex<Behavior>,
    received: Mutex<Vec<String>>,
    answer: Box<Answer>,
}

impl Fake {
    /// Starts a server that returns a status and JSON.
    pub(crate) async fn start(
        answer: impl Fn(&Received) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (behavior, received) = (Mutex::new(Behavior::Normal), Mutex::default());
        let state = Arc::new(Shared { behavior, received, answer: Box::new(answer) });
        let router = Router::new().fallback(serve).with_state(state.clone());
        let task = base::task::spawn("fake", async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self { address, state, task }
    }

    /// Changes its behavior.
    pub(crate) fn set(&self, behavior: Behavior) {
        *self.state.behavior.lock().unwrap() = behavior;
    }

    /// The requests so far, as `METHOD /path`.
    pub(crate) fn received(&self) -> Vec<String> {
        self.state.received.lock().unwrap().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let request = read(request).await;
    state.received.lock().unwrap().push(format!("{} {}", request.method, request.path));
    let behavior = *state.behavior.lock().unwrap();
    match behavior {
        Behavior::Normal => answer(&state, &request),
        Behavior::Slow => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            answer(&state, &request)
        }
        Behavior::Garbage => "<html>Welcome to nginx!</html>".into_response(),
        Behavior::Endless => vec![b' '; 3 << 20].into_response(),
        Behavior::Status(status) => {
            let body = json!({"errors": ["it hurts"], "error_description": "it hurts"});
            // The target of redirects.
            let to = [("location", "/elsewhere")];
            (StatusCode::from_u16(status).unwrap(), to, body.to_string()).into_response()
        }
    }
}

fn answer(state: &Shared, request: &Received) -> Response {
    let (status, body) = (state.answer)(request);
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    (StatusCode::from_u16(status).unwrap(), body).into_response()
}

async fn read(request: Request) -> Received {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body)
        .unwrap_or_else(|_| json!(fields(std::str::from_utf8(&body).unwrap())));
    let query = fields(parts.uri.query().unwrap_or_default());
    let path = parts.uri.path().to_owned();
    Received { method: parts.method.to_string(), path, query, headers: parts.headers, body }
}

fn fields(text: &str) -> HashMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://host/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

/// A client for the tests' own requests; all HTTP of this binary begins here or with [`prepare`].
pub(crate) fn http() -> reqwest::Client {
    prepare();
    reqwest::Client::builder().tls_certs_only([]).build().unwrap()
}

/// Installs the TLS provider of this process, as the server's `main` does.
pub(crate) fn prepare() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
