//! HTTP server: connection limits and graceful shutdown.

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

use crate::{App, normalize_path, router};

/// Maximum number of open connections; further ones wait.
const MAX_CONNECTIONS: usize = 10_000;
/// Time limit for receiving request headers, capped by the request timeout.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Grace period for running requests at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(6);

/// Serves until `stop` is set, then waits for running requests.
pub async fn serve(listener: TcpListener, app: App, mut stop: Stop) {
    let header_timeout = HEADER_TIMEOUT.min(app.settings.request_timeout);
    let router = router(app);
    let open = GracefulShutdown::new();
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let permit = connections.clone().acquire_owned().await.expect("semaphore is never closed");
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => connect(stream, peer, permit, &router, header_timeout, &open),
                Err(error) => {
                    // Usually out of file descriptors: wait for connections to close.
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            () = stop.signalled() => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(SHUTDOWN_GRACE, open.shutdown()).await.is_err() {
        tracing::warn!("requests still running after the shutdown grace period");
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
    // Responses are small: send them without delay.
    let _ = stream.set_nodelay(true);
    let router = router.clone();
    let service = service_fn(move |request| respond(router.clone(), peer, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .serve_connection(TokioIo::new(stream), service);
    let connection = open.watch(connection);
    task::spawn("connection", async move {
        let _permit = permit;
        if let Err(error) = connection.await {
            tracing::debug!(%peer, %error, "connection closed early");
        }
    });
}

async fn respond(
    router: Router,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Result<axum::response::Response, Infallible> {
    let mut request = normalize_path(request.map(Body::new));
    request.extensions_mut().insert(ConnectInfo(peer));
    router.oneshot(request).await
}
