//! Serving HTTP: connections with limits, and an end that loses nothing.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use base::{Stop, task};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use crate::{App, one_spelling, router};

/// How many connections are open at once at most; more wait.
const MAX_CONNECTIONS: usize = 10_000;
/// How long a client may take to send a request's headers; less if requests may take less.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests under way may take to end when the server stops.
const DRAIN: Duration = Duration::from_secs(6);

/// Serves until told to stop, then lets requests under way come to their end.
pub async fn serve(listener: TcpListener, app: App, mut stop: Stop) {
    let header_timeout = HEADER_TIMEOUT.min(app.settings.request_timeout);
    let router = router(app);
    let open = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let permit = room.clone().acquire_owned().await.expect("is never closed");
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => connect(stream, peer, permit, &router, header_timeout, &open),
                Err(error) => {
                    // Usually out of file descriptors: let some connections end first.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            () = stop.told() => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, open.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}

fn connect(
    stream: TcpStream,
    peer: SocketAddr,
    permit: OwnedSemaphorePermit,
    router: &Router,
    header_timeout: Duration,
    open: &GracefulShutdown,
) {
    // Answers are small: better sent at once than together.
    let _ = stream.set_nodelay(true);
    let router = router.clone();
    let service = service_fn(move |request| answer(router.clone(), peer, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .serve_connection(TokioIo::new(stream), service);
    let connection = open.watch(connection);
    task::spawn("connection", async move {
        let _permit = permit;
        if let Err(error) = connection.await {
            tracing::debug!(%peer, %error, "a connection ended early");
        }
    });
}

async fn answer(
    router: Router,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Result<axum::response::Response, Infallible> {
    let mut request = one_spelling(request.map(Body::new));
    request.extensions_mut().insert(ConnectInfo(peer));
    router.oneshot(request).await
}
