//! Port forwarder: one small process per container with published ports; outlives the server.
//!
//! The forwarder listens on the host's loopback and forwards connections to the container. It ends
//! shortly after the container's shim, so a container that waits for its restart keeps its ports.
//! It receives addresses and ports only: no plan, no environment, no secrets.

pub(crate) mod child;
mod proxy;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::child::{NotReady, Task, spawn_until_ready};
use super::dirs::read_json;
use super::plan::{Bundle, Link, Plan};
use super::running::{POLL_INTERVAL, is_locked, pidfd, pidfd_ended};
use super::{Embedded, Error};

/// How long a forwarder may take to open its ports, and to end.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Poll interval for a change that is imminent.
const SHORT_POLL: Duration = Duration::from_millis(20);

/// Request to a forwarder: content of the file that it locks, read as its standard input.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    /// Address of the container.
    address: Ipv4Addr,
    /// The container's ports.
    ports: Vec<u16>,
    /// Preferred host port of each; 0: any.
    wanted: Vec<u16>,
}

/// What a forwarder reports once its ports are open.
///
/// It may be older than the server: fields are only ever added, each with a default.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ports {
    /// Pid of the forwarder.
    #[serde(rename = "porter")]
    pid: i32,
    /// Host loopback ports, one for each of the container's.
    published: Vec<u16>,
}

impl Embedded {
    /// Adopts or starts the forwarder of a container and returns its ports.
    ///
    /// The caller holds the container's lock.
    pub(super) async fn ensure_forwarder(
        &self,
        bundle: &Bundle,
        plan: &Plan,
        link: &Link,
    ) -> Result<Vec<u16>, Error> {
        let until = base::monotonic() + TIMEOUT;
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let lock = options.open(bundle.forwarder()).map_err(not_opened)?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return self.start_forwarder(bundle, plan, link, lock).await,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(not_opened(error)),
            }
            if let Some(Ports { published, .. }) = read_json(&bundle.ports()) {
                return Ok(published);
            }
            // Its server was killed just after starting it.
            if base::monotonic() > until {
                return Err(failed("does not respond"));
            }
            tokio::time::sleep(SHORT_POLL).await;
        }
    }

    /// Starts a forwarder, which inherits the lock and so holds it from the beginning.
    async fn start_forwarder(
        &self,
        bundle: &Bundle,
        plan: &Plan,
        link: &Link,
        mut lock: File,
    ) -> Result<Vec<u16>, Error> {
        let mut wanted = plan.published.clone();
        wanted.resize(plan.container.ports.len(), 0);
        let request =
            Request { address: link.address, ports: plan.container.ports.clone(), wanted };
        // The report of the previous forwarder is obsolete.
        remove_ports(bundle).and_then(|()| write(&mut lock, &request)).map_err(not_opened)?;
        let stderr = File::create(bundle.at("porter.err")).map_err(not_opened)?;
        let mut command = tokio::process::Command::new(&self.options.program);
        command
            .arg(Task::Forwarder.argument())
            .arg(bundle.path())
            .env_clear()
            .stdin(Stdio::from(lock))
            .stderr(stderr)
            .current_dir("/");
        let opened = spawn_until_ready(command, TIMEOUT).await;
        opened.map(|Ports { published, .. }| published).map_err(|error| match error {
            NotReady::Reported(error) => error,
            NotReady::Io(error) => not_opened(error),
            NotReady::TimedOut => failed("does not respond"),
            NotReady::Exited => failed("exited unexpectedly"),
        })
    }
}

/// Whether a container's forwarder was killed.
pub(super) fn is_lost(bundle: &Bundle) -> bool {
    bundle.forwarder().exists() && !is_locked(&bundle.forwarder())
}

/// Returns when a container's forwarder has ended; never, if it has none.
pub(super) async fn ended(bundle: &Bundle) {
    if !bundle.forwarder().exists() {
        return std::future::pending().await;
    }
    let ports: Option<Ports> = read_json(&bundle.ports());
    match ports.and_then(|ports| pidfd(ports.pid)) {
        Some(pidfd) => pidfd_ended(pidfd).await,
        None => tokio::time::sleep(POLL_INTERVAL).await,
    }
}

/// Kills a container's forwarder. Returns whether it has ended.
pub(super) async fn kill(bundle: &Bundle) -> bool {
    let until = base::monotonic() + TIMEOUT;
    while is_locked(&bundle.forwarder()) && base::monotonic() < until {
        let ports: Option<Ports> = read_json(&bundle.ports());
        let pidfd = ports.and_then(|ports| pidfd(ports.pid));
        // Checked again: while it holds the lock, its pid can't belong to another process.
        let Some(pidfd) = pidfd.filter(|_| is_locked(&bundle.forwarder())) else {
            tokio::time::sleep(SHORT_POLL).await;
            continue;
        };
        // It has no state to save.
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        let left = until.saturating_duration_since(base::monotonic());
        let _ = tokio::time::timeout(left, pidfd_ended(pidfd)).await;
    }
    !is_locked(&bundle.forwarder())
}

fn remove_ports(bundle: &Bundle) -> io::Result<()> {
    match std::fs::remove_file(bundle.ports()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes the request into the locked file itself and rewinds it.
fn write(lock: &mut File, request: &Request) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    lock.write_all(&serde_json::to_vec(request)?)?;
    lock.rewind()
}

pub(super) fn not_opened(cause: impl Into<io::Error>) -> Error {
    Error::PortNotOpened(cause.into().to_string())
}

fn failed(what: &str) -> Error {
    Error::PortNotOpened(format!("port forwarder {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_other_versions_are_understood() {
        for report in [
            r#"{"porter":7,"published":[4000]}"#,
            r#"{"porter":7,"published":[4000],"since":"later","more":{"of":["it"]}}"#,
        ] {
            let expected = Ports { pid: 7, published: vec![4000] };
            assert_eq!(serde_json::from_str::<Ports>(report).unwrap(), expected, "{report}");
        }
    }
}
