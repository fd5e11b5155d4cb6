//! The forwarder's process.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::sync::watch;

use super::proxy::{Forward, listen, serve};
use super::{Ports, Request, not_opened};
use crate::Error;
use crate::child::{close_inherited_fds, report_ready};
use crate::dirs::write_json;
use crate::plan::Bundle;
use crate::raw;

/// Stack of the thread that waits for the shim; it makes a single system call.
const STACK_BYTES: usize = 64 << 10;
/// Pause after a failed attempt to wait for the lock.
const RETRY: Duration = Duration::from_secs(1);

/// Entry point of the helper process. Its standard input is the request and the lock it holds.
pub(crate) fn child(directory: &Path) -> ExitCode {
    raw::reset_signals();
    close_inherited_fds();
    // Fails only if this process leads a session already.
    let _ = rustix::process::setsid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime
        .map_err(not_opened)
        .and_then(|runtime| runtime.block_on(run(&Bundle(directory.to_owned()))));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_ready(&Err::<Ports, _>(error));
            ExitCode::FAILURE
        }
    }
}

/// Opens the ports, reports them, and serves until the container has ended.
async fn run(bundle: &Bundle) -> Result<(), Error> {
    let request: Request = serde_json::from_reader(std::io::stdin().lock()).map_err(not_opened)?;
    let shim = File::open(bundle.lock()).map_err(not_opened)?;
    let listeners = listen(&request.wanted).await.map_err(not_opened)?;
    let (mut forwards, mut published) = (Vec::new(), Vec::new());
    for (listener, port) in listeners.into_iter().zip(request.ports) {
        published.push(listener.local_addr().map_err(not_opened)?.port());
        forwards.push(Forward { listener, target: SocketAddr::from((request.address, port)) });
    }
    let over = shim_ended(shim).map_err(not_opened)?;
    let ports = Ports { pid: rustix::process::getpid().as_raw_pid(), published };
    write_json(&bundle.ports(), &ports).map_err(not_opened)?;
    report_ready(&Ok::<_, Error>(ports));
    serve(forwards, &over).await;
    Ok(())
}

/// A channel that closes when the shim releases its lock.
fn shim_ended(shim: File) -> std::io::Result<watch::Receiver<()>> {
    let (alive, over) = watch::channel(());
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        loop {
            // A shared lock does not make the shim look alive.
            match flock(&shim, FlockOperation::LockShared) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(_) => std::thread::sleep(RETRY),
            }
        }
        drop(alive);
    })?;
    Ok(over)
}
