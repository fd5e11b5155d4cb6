//! HTTP server: connection limits and graceful shutdown.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
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

use crate::edge::Reserved;
use crate::edge::limit::{Slot, Slots, address_key};
use crate::edge::settings::EdgeSettings;
use crate::edge::write_timeout::WriteTimeout;
use crate::{App, normalize_path, router};

/// Time limit for receiving request headers, capped by the request timeout.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a client to accept more bytes of a response.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
/// Grace period for running requests at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(6);
/// Additional connections for operational endpoints, which answer one request each.
const RESERVE: usize = 64;
/// Time limit for receiving request headers on a reserved connection.
const RESERVE_HEADER_TIMEOUT: Duration = Duration::from_millis(500);
/// Response to a connection beyond the limit of its address.
const TOO_MANY: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 5\r\n\
    connection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves until `stop` is set, then waits for running requests.
pub async fn serve(listener: TcpListener, app: App, mut stop: Stop) {
    let header_timeout = HEADER_TIMEOUT.min(app.settings.request_timeout);
    let connections = Connections::new(&app.settings.edge, header_timeout);
    let router = router(app);
    let open = GracefulShutdown::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Usually out of file descriptors: wait for connections to close.
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = stop.signalled() => break,
        };
        let Some(slot) = connections.slot(peer) else {
            refuse(stream, peer);
            continue;
        };
        // Without a place, this and further connections wait.
        tokio::select! {
            place = connections.place() => {
                connect(stream, peer, connections.admit(place, slot), &router, &open);
            }
            () = stop.signalled() => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(SHUTDOWN_GRACE, open.shutdown()).await.is_err() {
        tracing::warn!("requests still running after the shutdown grace period");
    }
}

/// Limits of connections.
struct Connections {
    usual: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    by_address: Slots<IpAddr>,
    settings: EdgeSettings,
    header_timeout: Duration,
}

/// Place of a connection among all others.
struct Place {
    permit: OwnedSemaphorePermit,
    is_reserved: bool,
}

/// Slot of a connection among those of its address, if that is limited.
type AddressSlot = Option<Slot<IpAddr>>;

/// An admitted connection.
struct Admitted {
    place: Place,
    slot: AddressSlot,
    header_timeout: Duration,
}

impl Connections {
    fn new(settings: &EdgeSettings, header_timeout: Duration) -> Self {
        Self {
            usual: Arc::new(Semaphore::new(settings.max_connections)),
            reserved: Arc::new(Semaphore::new(RESERVE)),
            by_address: Slots::default(),
            settings: settings.clone(),
            header_timeout,
        }
    }

    /// Waits for a place: a usual one, or a reserved one.
    async fn place(&self) -> Place {
        if let Ok(permit) = self.usual.clone().try_acquire_owned() {
            return Place { permit, is_reserved: false };
        }
        let (usual, reserved) = (self.usual.clone(), self.reserved.clone());
        tokio::select! {
            biased;
            permit = usual.acquire_owned() => {
                Place { permit: permit.expect("semaphore is never closed"), is_reserved: false }
            }
            permit = reserved.acquire_owned() => {
                Place { permit: permit.expect("semaphore is never closed"), is_reserved: true }
            }
        }
    }

    /// Takes a slot of the address; none if it has too many connections. Addresses of this machine
    /// and of proxies, which carry the connections of many clients, are not limited.
    fn slot(&self, peer: SocketAddr) -> Option<AddressSlot> {
        let address = peer.ip().to_canonical();
        let is_proxy = self.settings.trusted_proxies.iter().any(|proxy| proxy.contains(address));
        let is_limited = self.settings.limit_loopback || !address.is_loopback();
        if !is_limited || is_proxy {
            return Some(None);
        }
        let max = self.settings.max_connections_per_address;
        self.by_address.take(address_key(address), max).map(Some)
    }

    fn admit(&self, place: Place, slot: AddressSlot) -> Admitted {
        let header_timeout = if place.is_reserved {
            RESERVE_HEADER_TIMEOUT.min(self.header_timeout)
        } else {
            self.header_timeout
        };
        Admitted { place, slot, header_timeout }
    }
}

/// Answers a connection that is not served, as far as its buffers allow.
fn refuse(stream: TcpStream, peer: SocketAddr) {
    tracing::debug!(%peer, "connection refused: too many of its address");
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write_all(TOO_MANY);
    }
}

fn connect(
    stream: TcpStream,
    peer: SocketAddr,
    admitted: Admitted,
    router: &Router,
    open: &GracefulShutdown,
) {
    // Responses are small: send them without delay.
    let _ = stream.set_nodelay(true);
    let Admitted { place, slot, header_timeout } = admitted;
    let (router, is_reserved) = (router.clone(), place.is_reserved);
    let service = service_fn(move |request| respond(router.clone(), peer, is_reserved, request));
    let stream = WriteTimeout::new(stream, WRITE_TIMEOUT);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .keep_alive(!is_reserved)
        .serve_connection(TokioIo::new(stream), service);
    let connection = open.watch(connection);
    task::spawn("connection", async move {
        let _held = (place.permit, slot);
        if let Err(error) = connection.await {
            tracing::debug!(%peer, %error, "connection closed early");
        }
    });
}

async fn respond(
    router: Router,
    peer: SocketAddr,
    is_reserved: bool,
    request: Request<Incoming>,
) -> Result<axum::response::Response, Infallible> {
    let mut request = normalize_path(request.map(Body::new));
    request.extensions_mut().insert(ConnectInfo(peer));
    if is_reserved {
        request.extensions_mut().insert(Reserved);
    }
    router.oneshot(request).await
}
