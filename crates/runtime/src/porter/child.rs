//! The porter's own process.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::sync::watch;

use super::carry::{Door, listen, serve};
use super::{Order, Ports, unopened};
use crate::Error;
use crate::child::{close_others, tell};
use crate::dirs::write_json;
use crate::plan::Place;
use crate::raw;

/// The watching thread only ever makes one call.
const STACK_BYTES: usize = 64 << 10;
/// How long until a lock that could not be waited for is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The child. Its standard input is its order and, for as long as it lives, its lock.
pub(crate) fn child(directory: &Path) -> ExitCode {
    raw::reset_signals();
    close_others();
    // Fails only for a session's leader, which is what we want to be.
    let _ = rustix::process::setsid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime
        .map_err(unopened)
        .and_then(|runtime| runtime.block_on(run(&Place(directory.to_owned()))));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&Err::<Ports, _>(error));
            ExitCode::FAILURE
        }
    }
}

/// Opens the ports, says so, and serves them until the container has ended for good.
async fn run(place: &Place) -> Result<(), Error> {
    let order: Order = serde_json::from_reader(std::io::stdin().lock()).map_err(unopened)?;
    let shim = File::open(place.lock()).map_err(unopened)?;
    let listeners = listen(&order.wanted).await.map_err(unopened)?;
    let (mut doors, mut published) = (Vec::new(), Vec::new());
    for (listener, port) in listeners.into_iter().zip(order.ports) {
        published.push(listener.local_addr().map_err(unopened)?.port());
        doors.push(Door { listener, target: SocketAddr::from((order.address, port)) });
    }
    let over = over(shim).map_err(unopened)?;
    let ports = Ports { porter: rustix::process::getpid().as_raw_pid(), published };
    write_json(&place.ports(), &ports).map_err(unopened)?;
    tell(&Ok::<_, Error>(ports));
    serve(doors, &over).await;
    Ok(())
}

/// Closes when the shim has let go of its lock: the kernel says when, nobody has to look.
fn over(shim: File) -> std::io::Result<watch::Receiver<()>> {
    let (living, over) = watch::channel(());
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        loop {
            // Shared, so that who looks whether the shim lives is not deceived by us.
            match flock(&shim, FlockOperation::LockShared) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(_) => std::thread::sleep(RETRY),
            }
        }
        drop(living);
    })?;
    Ok(over)
}
