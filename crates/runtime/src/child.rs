//! Helper processes: this program, started again for one task.
//!
//! Untrusted input (registries, layers) and irreversible changes of a process (namespaces, mounts)
//! stay out of the server's process.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::{Error, forwarder, image, probe, remove, shim};

/// First argument of each helper process.
const FETCH: &str = "runtime:fetch";
const LOAD: &str = "runtime:load";
const REPACK: &str = "runtime:repack";
const SHIM: &str = "runtime:shim";
const SEALED_SHIM: &str = "runtime:sealed-shim";
const FORWARDER: &str = "runtime:forwarder";
const PROBE: &str = "runtime:probe";
const REMOVE: &str = "runtime:remove";

/// Task of a helper process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Pull and unpack an image: request on stdin, response on stdout.
    Fetch,
    /// Unpack an image archive: request as argument, archive on stdin, response on stdout.
    Load,
    /// Rewrite an image archive: request as argument, archive on stdin, response on stdout.
    Repack,
    /// Run one container.
    Shim,
    /// The same, after the program was sealed against writes by its container.
    SealedShim,
    /// Forward one container's published ports: request on stdin, response on stdout.
    Forwarder,
    /// Check what the host supports: response on stdout.
    Probe,
    /// Remove a directory tree: response on stdout.
    Remove,
}

impl Task {
    /// First argument that selects this task.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Task::Fetch => FETCH,
            Task::Load => LOAD,
            Task::Repack => REPACK,
            Task::Shim => SHIM,
            Task::SealedShim => SEALED_SHIM,
            Task::Forwarder => FORWARDER,
            Task::Probe => PROBE,
            Task::Remove => REMOVE,
        }
    }

    fn parse(argument: &str) -> Option<Self> {
        use Task::{Fetch, Forwarder, Load, Probe, Remove, Repack, SealedShim, Shim};
        [Fetch, Load, Repack, Shim, SealedShim, Forwarder, Probe, Remove]
            .into_iter()
            .find(|task| task.argument() == argument)
    }
}

/// Runs the helper process that the arguments select, if any.
///
/// Must be the first call in `main`, before any thread exists: the container library forks, and
/// forking a multi-threaded process may deadlock.
pub fn child_main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let task = Task::parse(arguments.next()?.to_str()?)?;
    let argument: OsString = arguments.next().unwrap_or_default();
    let directory = Path::new(&argument);
    Some(match task {
        Task::Fetch => image::fetch::child(),
        Task::Load => image::load::child(&argument),
        Task::Repack => image::repack::child(&argument),
        Task::Shim => shim::seal::child(directory),
        Task::SealedShim => shim::child(directory),
        Task::Forwarder => forwarder::child::child(directory),
        Task::Probe => probe::child(directory),
        Task::Remove => remove::child(directory),
    })
}

/// Why a helper process did not report that it is ready.
pub(crate) enum NotReady {
    /// It reported an error.
    Reported(Error),
    /// It could not be started or read from.
    Io(std::io::Error),
    /// It did not report in time.
    TimedOut,
    /// It exited without a report.
    Exited,
}

/// Starts a helper process that outlives the server, and waits until it calls [`report_ready`].
/// Kills it if it fails, or if the caller stops waiting.
pub(crate) async fn spawn_until_ready<T: DeserializeOwned>(
    mut command: Command,
    timeout: Duration,
) -> Result<T, NotReady> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(NotReady::Io)?;
    let guard = KillOnDrop::new(child.id());
    let mut report = Vec::new();
    let read = async {
        match child.stdout.take() {
            Some(mut stdout) => stdout.read_to_end(&mut report).await,
            None => Ok(0),
        }
    };
    match tokio::time::timeout(timeout, read).await {
        Ok(read) => read.map_err(NotReady::Io)?,
        Err(_) => return Err(NotReady::TimedOut),
    };
    let report: Result<T, Error> = serde_json::from_slice(&report).map_err(|_| NotReady::Exited)?;
    let ready = report.map_err(NotReady::Reported)?;
    guard.disarm();
    Ok(ready)
}

/// Kills a process that is not ready yet when its waiter is dropped.
struct KillOnDrop(Option<OwnedFd>);

impl KillOnDrop {
    fn new(id: Option<u32>) -> Self {
        let pid = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(pidfd) = &self.0 {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}

/// In a helper process: reports readiness or an error to the server, then closes stdout.
pub(crate) fn report_ready<T: Serialize>(ready: &Result<T, Error>) {
    let mut stdout = std::io::stdout().lock();
    let _ = serde_json::to_writer(&mut stdout, ready);
    let _ = stdout.flush();
    drop(stdout);
    // Closes the pipe, so that the server reads to its end.
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

/// In a helper process: closes all descriptors but stdin, stdout and stderr. Descriptors inherited
/// from the server would stay open as long as this process lives.
pub(crate) fn close_inherited_fds() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> =
        open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        let _ = nix::unistd::close(number);
    }
}
