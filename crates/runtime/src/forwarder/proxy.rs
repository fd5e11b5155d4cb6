//! Forwards connections from ports on the host's loopback to a container.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::task::Tasks;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Maximum number of open connections; further ones wait.
const MAX_CONNECTIONS: u64 = 4096;
/// Descriptors reserved for other uses; each listener takes one more.
const RESERVED_FDS: u64 = 32;
/// How long connections may finish after the container has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);

/// A listening port and its target.
pub(super) struct Forward {
    pub(super) listener: TcpListener,
    pub(super) target: SocketAddr,
}

/// Binds the preferred ports where they are free, else any free ones.
pub(super) async fn listen(preferred: &[u16]) -> std::io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(preferred.len());
    for port in preferred {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await {
            Err(_) if *port != 0 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            other => other?,
        };
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Forwards connections until `over` closes, then drains them.
pub(super) async fn serve(forwards: Vec<Forward>, over: &watch::Receiver<()>) {
    let permits = Arc::new(Semaphore::new(max_connections(forwards.len())));
    let mut tasks = Tasks::new();
    for forward in forwards {
        tasks.spawn("forward", forward.serve(permits.clone(), over.clone()));
    }
    let _ = over.clone().changed().await;
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, all).await;
}

impl Forward {
    async fn serve(self, permits: Arc<Semaphore>, mut over: watch::Receiver<()>) {
        let Self { listener, target } = self;
        let mut open = Tasks::new();
        loop {
            tokio::select! {
                accepted = accept(&listener, &permits) => match accepted {
                    Ok((stream, permit)) => { open.spawn("connection", proxy(stream, target, permit)); }
                    // Out of descriptors or memory: wait until other connections close.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(_) = open.join_next(), if !open.is_empty() => {}
                _ = over.changed() => break,
            }
        }
        drop(listener);
        while open.join_next().await.is_some() {}
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

async fn proxy(mut from: TcpStream, target: SocketAddr, _permit: OwnedSemaphorePermit) {
    let Ok(mut to) = TcpStream::connect(target).await else { return };
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    // Either side may disconnect at any time.
    let _ = copy_bidirectional(&mut from, &mut to).await;
}

/// How many connections fit into the descriptor limit, including a pending one per listener. Each
/// needs two descriptors. Raises the soft limit as far as allowed.
fn max_connections(listeners: usize) -> usize {
    let listeners = listeners as u64;
    let needed = 2 * (MAX_CONNECTIONS + listeners) + listeners + RESERVED_FDS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = maximum.unwrap_or(needed).min(needed);
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => current.unwrap_or(needed),
    };
    let connections = limit.saturating_sub(listeners + RESERVED_FDS) / 2;
    usize::try_from(connections.max(listeners + 1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;

    use super::*;

    #[tokio::test]
    async fn preferred_port_is_bound_if_it_is_free() {
        let first = listen(&[0, 0]).await.unwrap();
        let ports: Vec<u16> =
            first.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        let second = listen(&ports).await.unwrap();
        for (at, listener) in second.iter().enumerate() {
            assert_ne!(listener.local_addr().unwrap().port(), ports[at], "the port is in use");
        }
        drop(first);
        let third = listen(&ports).await.unwrap();
        let again: Vec<u16> =
            third.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert_eq!(again, ports);
    }

    /// A half-closed connection still gets its response, even if the container has ended; new
    /// connections are refused.
    #[tokio::test(flavor = "multi_thread")]
    async fn half_closed_connections_finish_after_the_container_has_ended() {
        let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = listen(&[0]).await.unwrap().remove(0);
        let address = listener.local_addr().unwrap();
        let forward = Forward { listener, target: target.local_addr().unwrap() };
        let (alive, over) = watch::channel(());
        let mut tasks = Tasks::new();
        tasks.spawn("forward", async move { serve(vec![forward], &over).await });
        let talk = move || {
            let mut client = std::net::TcpStream::connect(address).unwrap();
            client.write_all(b"request").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let (mut inside, _) = target.accept().unwrap();
            let mut received = String::new();
            inside.read_to_string(&mut received).unwrap();
            drop(alive);
            std::thread::sleep(Duration::from_millis(100));
            assert!(std::net::TcpStream::connect(address).is_err(), "the listener is closed");
            inside.write_all(received.as_bytes()).unwrap();
            drop(inside);
            let mut response = String::new();
            client.read_to_string(&mut response).unwrap();
            response
        };
        let response = tokio::task::spawn_blocking(talk).await.unwrap();
        assert_eq!(response, "request");
        tasks.join_next().await.unwrap().unwrap();
    }
}
