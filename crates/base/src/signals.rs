//! Termination signals of the operating system.

use std::future::Future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Returns at the first SIGTERM or SIGINT. From this call on, neither terminates the process.
#[expect(clippy::disallowed_methods, reason = "the one place that handles signals")]
pub fn terminated() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Returns at the first SIGINT (Ctrl-C).
#[expect(clippy::disallowed_methods, reason = "the one place that handles signals")]
pub async fn interrupted() {
    let _ = tokio::signal::ctrl_c().await;
}
