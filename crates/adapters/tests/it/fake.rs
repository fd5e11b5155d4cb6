//! HTTP servers inside a test, for systems that can't be had and faults that can't be asked for.

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

/// What a fake is asked.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) headers: HeaderMap,
    /// JSON, or the fields of a form.
    pub(crate) body: Value,
}

impl Asked {
    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The method and the path, to match with.
    pub(crate) fn route(&self) -> (&str, Vec<&str>) {
        (&self.method, self.path.split('/').skip(1).collect())
    }
}

/// How a fake answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    /// It answers after the caller has lost patience.
    Slow,
    /// It answers 200 with something that nobody has asked for.
    Garbage,
    /// It answers without end.
    Endless,
    /// It answers like this, whatever is asked.
    Status(u16),
}

type Answer = dyn Fn(&Asked) -> (u16, Value) + Send + Sync;

/// A server on loopback; it ends with this.
pub(crate) struct Fake {
    pub(crate) address: String,
    state: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    mood: Mutex<Mood>,
    asked: Mutex<Vec<String>>,
    answer: Box<Answer>,
}

impl Fake {
    /// Starts a server that answers with a status and JSON.
    pub(crate) async fn start(
        answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (mood, asked) = (Mutex::new(Mood::Fine), Mutex::default());
        let state = Arc::new(Shared { mood, asked, answer: Box::new(answer) });
        let router = Router::new().fallback(serve).with_state(state.clone());
        let task = base::task::spawn("fake", async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self { address, state, task }
    }

    /// Changes how it answers from now on.
    pub(crate) fn be(&self, mood: Mood) {
        *self.state.mood.lock().unwrap() = mood;
    }

    /// What it was asked so far, as `METHOD /path`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.asked.lock().unwrap().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let asked = read(request).await;
    state.asked.lock().unwrap().push(format!("{} {}", asked.method, asked.path));
    let mood = *state.mood.lock().unwrap();
    match mood {
        Mood::Fine => answer(&state, &asked),
        Mood::Slow => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            answer(&state, &asked)
        }
        Mood::Garbage => "<html>Welcome to nginx!</html>".into_response(),
        Mood::Endless => vec![b' '; 3 << 20].into_response(),
        Mood::Status(status) => {
            let body = json!({"errors": ["it hurts"], "error_description": "it hurts"});
            // Where a status sends elsewhere, it is here.
            let to = [("location", "/elsewhere")];
            (StatusCode::from_u16(status).unwrap(), to, body.to_string()).into_response()
        }
    }
}

fn answer(state: &Shared, asked: &Asked) -> Response {
    let (status, body) = (state.answer)(asked);
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    (StatusCode::from_u16(status).unwrap(), body).into_response()
}

async fn read(request: Request) -> Asked {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body)
        .unwrap_or_else(|_| json!(fields(std::str::from_utf8(&body).unwrap())));
    let query = fields(parts.uri.query().unwrap_or_default());
    let path = parts.uri.path().to_owned();
    Asked { method: parts.method.to_string(), path, query, headers: parts.headers, body }
}

fn fields(text: &str) -> HashMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://host/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

/// A client for the tests' own calls; all HTTP of this binary begins here or with [`prepare`].
pub(crate) fn http() -> reqwest::Client {
    prepare();
    reqwest::Client::builder().tls_certs_only([]).build().unwrap()
}

/// Chooses TLS for this process, as the server's `main` does.
pub(crate) fn prepare() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
