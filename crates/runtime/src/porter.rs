//! The porter: one small process per container with published ports, which outlives the server.
//!
//! It holds the ports on this machine's loopback and carries what comes to the container. It ends by
//! itself soon after the container's shim; a container that waits for its restart keeps its ports.
//! It is told addresses and ports and nothing else: no plan, no environment, no secrets.

mod carry;
pub(crate) mod child;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::child::{NoWord, Task, first_word};
use super::dirs::read_json;
use super::plan::{Link, Place, Plan};
use super::running::{LOOK, ended, handle, is_held};
use super::{Embedded, Error};

/// How long a porter may take to open its ports, and to go when it must.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long until something that is about to happen is looked for again.
const SOON: Duration = Duration::from_millis(20);

/// What a porter shall do: stands in the file that it holds, and reads as its standard input.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// Where the container is.
    address: Ipv4Addr,
    /// The container's ports.
    ports: Vec<u16>,
    /// The port to publish each as, if it is free; 0: any.
    wanted: Vec<u16>,
}

/// What a porter says of itself, once its ports are open.
///
/// It may be older than the server that reads this: fields are only ever added, each with a default.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ports {
    /// The porter's process.
    porter: i32,
    /// The ports on this machine's loopback, one for each of the container's.
    published: Vec<u16>,
}

impl Embedded {
    /// Makes sure that a porter lives, the one of before or another one; its ports.
    ///
    /// Who calls this is alone with the container.
    pub(super) async fn porter(
        &self,
        place: &Place,
        plan: &Plan,
        link: &Link,
    ) -> Result<Vec<u16>, Error> {
        let until = base::monotonic() + PATIENCE;
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let lock = options.open(place.porter()).map_err(unopened)?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return self.start_porter(place, plan, link, lock).await,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(unopened(error)),
            }
            if let Some(Ports { published, .. }) = read_json(&place.ports()) {
                return Ok(published);
            }
            // Its server was killed just after it had started it.
            if base::monotonic() > until {
                return Err(broken("says nothing"));
            }
            tokio::time::sleep(SOON).await;
        }
    }

    /// Starts a porter, which inherits the lock: at no time is there one that does not hold it.
    async fn start_porter(
        &self,
        place: &Place,
        plan: &Plan,
        link: &Link,
        mut lock: File,
    ) -> Result<Vec<u16>, Error> {
        let mut wanted = plan.published.clone();
        wanted.resize(plan.container.ports.len(), 0);
        let order = Order { address: link.address, ports: plan.container.ports.clone(), wanted };
        // What the one before has said no longer holds.
        forget(place).and_then(|()| write(&mut lock, &order)).map_err(unopened)?;
        let complaints = File::create(place.at("porter.err")).map_err(unopened)?;
        let mut command = tokio::process::Command::new(&self.options.program);
        command
            .arg(Task::Porter.argument())
            .arg(place.path())
            .env_clear()
            .stdin(Stdio::from(lock))
            .stderr(complaints)
            .current_dir("/");
        let opened = first_word(command, PATIENCE).await;
        opened.map(|Ports { published, .. }| published).map_err(|silence| match silence {
            NoWord::Refused(error) => error,
            NoWord::Failed(error) => unopened(error),
            NoWord::Late => broken("says nothing"),
            NoWord::Ended => broken("ended unexpectedly"),
        })
    }
}

/// Was a container's porter killed?
pub(super) fn is_lost(place: &Place) -> bool {
    place.porter().exists() && !is_held(&place.porter())
}

/// Returns when a container's porter is gone; never, if it has none.
pub(super) async fn gone(place: &Place) {
    if !place.porter().exists() {
        return std::future::pending().await;
    }
    let ports: Option<Ports> = read_json(&place.ports());
    match ports.and_then(|ports| handle(ports.porter)) {
        Some(porter) => ended(porter).await,
        None => tokio::time::sleep(LOOK).await,
    }
}

/// Ends a container's porter at once; is it gone?
pub(super) async fn end(place: &Place) -> bool {
    let until = base::monotonic() + PATIENCE;
    while is_held(&place.porter()) && base::monotonic() < until {
        let ports: Option<Ports> = read_json(&place.ports());
        let porter = ports.and_then(|ports| handle(ports.porter));
        // Looked at again: as long as it lives its number can't mean another process.
        let Some(porter) = porter.filter(|_| is_held(&place.porter())) else {
            tokio::time::sleep(SOON).await;
            continue;
        };
        // There is nothing that it would have to do before.
        let _ = pidfd_send_signal(&porter, Signal::KILL);
        let left = until.saturating_duration_since(base::monotonic());
        let _ = tokio::time::timeout(left, ended(porter)).await;
    }
    !is_held(&place.porter())
}

fn forget(place: &Place) -> io::Result<()> {
    match std::fs::remove_file(place.ports()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes an order into the very file that is locked, to be read from its beginning.
fn write(lock: &mut File, order: &Order) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    lock.write_all(&serde_json::to_vec(order)?)?;
    lock.rewind()
}

pub(super) fn unopened(cause: impl Into<io::Error>) -> Error {
    Error::PortNotOpened(cause.into().to_string())
}

fn broken(what: &str) -> Error {
    Error::PortNotOpened(format!("the container's porter {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_porters_of_other_versions_say_is_understood() {
        for said in [
            r#"{"porter":7,"published":[4000]}"#,
            r#"{"porter":7,"published":[4000],"since":"later","more":{"of":["it"]}}"#,
        ] {
            let expected = Ports { porter: 7, published: vec![4000] };
            assert_eq!(serde_json::from_str::<Ports>(said).unwrap(), expected, "{said}");
        }
    }
}
