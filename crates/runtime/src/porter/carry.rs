//! Ports on this machine's loopback that lead to a container's.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::task::Tasks;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How many connections are carried at once; more wait.
const MAX_OPEN: u64 = 4096;
/// Descriptors for all else than connections, and besides one for each port.
const SPARE: u64 = 32;
/// How long what a container said last may take to be carried.
const LAST_WORDS: Duration = Duration::from_millis(800);

/// A port and where it leads.
pub(super) struct Door {
    pub(super) listener: TcpListener,
    pub(super) target: SocketAddr,
}

/// Takes ports: the wanted ones where possible, else any that is free.
pub(super) async fn listen(wanted: &[u16]) -> std::io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(wanted.len());
    for port in wanted {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await {
            Err(_) if *port != 0 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            other => other?,
        };
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Leads what comes in to the container's ports, until `over` closes.
pub(super) async fn serve(doors: Vec<Door>, over: &watch::Receiver<()>) {
    let room = Arc::new(Semaphore::new(room(doors.len())));
    let mut tasks = Tasks::new();
    for door in doors {
        tasks.spawn("door", door.serve(room.clone(), over.clone()));
    }
    let _ = over.clone().changed().await;
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_WORDS, all).await;
}

impl Door {
    async fn serve(self, room: Arc<Semaphore>, mut over: watch::Receiver<()>) {
        let Self { listener, target } = self;
        let mut open = Tasks::new();
        loop {
            tokio::select! {
                accepted = accept(&listener, &room) => match accepted {
                    Ok((stream, place)) => { open.spawn("connection", carry(stream, target, place)); }
                    // Out of descriptors or memory: others will give theirs back.
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
    room: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = room.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

async fn carry(mut from: TcpStream, target: SocketAddr, _place: OwnedSemaphorePermit) {
    let Ok(mut to) = TcpStream::connect(target).await else { return };
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    // Either side may go away at any time; that is all an error here means.
    let _ = copy_bidirectional(&mut from, &mut to).await;
}

/// How many connections there is room for, a waiting one at each door included: each needs two
/// descriptors, of which this process gets as many as it may have.
fn room(doors: usize) -> usize {
    let doors = doors as u64;
    let wanted = 2 * (MAX_OPEN + doors) + doors + SPARE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = maximum.unwrap_or(wanted).min(wanted);
    let has = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => current.unwrap_or(wanted),
    };
    let connections = has.saturating_sub(doors + SPARE) / 2;
    usize::try_from(connections.max(doors + 1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;

    use super::*;

    #[tokio::test]
    async fn a_wanted_port_is_taken_if_it_is_free() {
        let first = listen(&[0, 0]).await.unwrap();
        let ports: Vec<u16> = first.iter().map(|one| one.local_addr().unwrap().port()).collect();
        let second = listen(&ports).await.unwrap();
        for (at, listener) in second.iter().enumerate() {
            assert_ne!(listener.local_addr().unwrap().port(), ports[at], "it is in use");
        }
        drop(first);
        let third = listen(&ports).await.unwrap();
        let again: Vec<u16> = third.iter().map(|one| one.local_addr().unwrap().port()).collect();
        assert_eq!(again, ports);
    }

    /// A client that has said all it wants to say still gets its answer, also when the container
    /// has ended meanwhile; then nobody listens any more.
    #[tokio::test(flavor = "multi_thread")]
    async fn half_closed_connections_carry_the_other_half_and_the_end_lets_them_finish() {
        let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = listen(&[0]).await.unwrap().remove(0);
        let address = listener.local_addr().unwrap();
        let door = Door { listener, target: target.local_addr().unwrap() };
        let (living, over) = watch::channel(());
        let mut tasks = Tasks::new();
        tasks.spawn("door", async move { serve(vec![door], &over).await });
        let talk = move || {
            let mut client = std::net::TcpStream::connect(address).unwrap();
            client.write_all(b"all I have to say").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let (mut inside, _) = target.accept().unwrap();
            let mut heard = String::new();
            inside.read_to_string(&mut heard).unwrap();
            drop(living);
            std::thread::sleep(Duration::from_millis(100));
            assert!(std::net::TcpStream::connect(address).is_err(), "it is over");
            inside.write_all(heard.as_bytes()).unwrap();
            drop(inside);
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            answer
        };
        let answer = tokio::task::spawn_blocking(talk).await.unwrap();
        assert_eq!(answer, "all I have to say");
        tasks.join_next().await.unwrap().unwrap();
    }
}
