//! Ports on this machine's loopback that lead to a container's.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How many connections one port carries at once; more wait.
const MAX_OPEN: usize = 4096;

/// The ports of one container. Dropping it closes them.
pub(crate) struct Proxy {
    _tasks: JoinSet<()>,
}

/// Takes ports: the ones of before where possible, else any that is free.
pub(crate) async fn listen(wanted: &[u16]) -> std::io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(wanted.len());
    for port in wanted {
        let before = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await;
        let listener = match before {
            Err(error) if *port != 0 => {
                tracing::warn!(port, %error, "a published port is taken meanwhile, using another");
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?
            }
            other => other?,
        };
        listeners.push(listener);
    }
    Ok(listeners)
}

impl Proxy {
    /// Leads what comes in to the container's ports.
    pub(crate) fn start(listeners: Vec<TcpListener>, address: Ipv4Addr, ports: &[u16]) -> Self {
        let mut tasks = JoinSet::new();
        for (listener, port) in listeners.into_iter().zip(ports) {
            tasks.spawn(serve(listener, SocketAddr::from((address, *port))));
        }
        Self { _tasks: tasks }
    }
}

async fn serve(listener: TcpListener, target: SocketAddr) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if open.len() < MAX_OPEN => match accepted {
                Ok((stream, _)) => { open.spawn(carry(stream, target)); }
                // Out of descriptors: others will close theirs.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
            Some(_) = open.join_next(), if !open.is_empty() => {}
        }
    }
}

async fn carry(mut from: TcpStream, target: SocketAddr) {
    let Ok(mut to) = TcpStream::connect(target).await else { return };
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    // Either side may go away at any time; that is all an error here means.
    let _ = copy_bidirectional(&mut from, &mut to).await;
}
