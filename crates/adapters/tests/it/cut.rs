//! An HTTP proxy that never answers one request, to simulate a crash of the caller.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::fake::http;

/// Which request is never answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    /// Counted from 0.
    pub(crate) number: usize,
    /// Whether it reaches the server.
    pub(crate) is_carried_out: bool,
}

/// The proxy; dropping it stops it.
pub(crate) struct Cut {
    pub(crate) address: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    server: String,
    http: reqwest::Client,
    state: Mutex<(usize, Option<At>)>,
    fell_silent: Notify,
}

impl Cut {
    /// A proxy to a server that cuts one request.
    pub(crate) async fn before(server: &str, at: At) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (state, fell_silent) = (Mutex::new((0, Some(at))), Notify::new());
        let shared = Shared { server: server.to_owned(), http: http(), state, fell_silent };
        let shared = Arc::new(shared);
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let task = base::task::spawn("cut", async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self { address, shared, task }
    }

    /// Runs something until its end, or until the cut; returns its result unless it was cut.
    pub(crate) async fn does<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.shared.fell_silent.notified() => None,
        }
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let at = {
        let mut state = shared.state.lock().unwrap();
        state.0 += 1;
        let number = state.0 - 1;
        state.1.filter(|at| at.number == number)
    };
    let answer = match at {
        Some(at) if !at.is_carried_out => StatusCode::OK.into_response(),
        _ => carry(&shared, request).await,
    };
    if at.is_some() {
        shared.fell_silent.notify_one();
        std::future::pending::<()>().await;
    }
    answer
}

async fn carry(shared: &Shared, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let url = format!("{}{}", shared.server, parts.uri);
    let answer = shared.http.request(parts.method, url).body(body).send().await.unwrap();
    let status = answer.status();
    (status, Body::from(answer.bytes().await.unwrap())).into_response()
}
