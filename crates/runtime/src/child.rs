//! The hidden sub-processes: the same program, started again for one narrow task.
//!
//! Hostile input (registries, layers) and everything that changes a process for good (namespaces,
//! mounts) stays out of the server's own process.

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

use super::{Error, image, porter, probe, shim};

/// Marks the first argument of a child.
const FETCH: &str = "runtime:fetch";
const SHIM: &str = "runtime:shim";
const SEALED_SHIM: &str = "runtime:sealed-shim";
const PORTER: &str = "runtime:porter";
const PROBE: &str = "runtime:probe";

/// The task of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Pull and unpack an image: request on stdin, answer on stdout.
    Fetch,
    /// Run one container.
    Shim,
    /// The same, after the program was sealed against its container.
    SealedShim,
    /// Hold one container's published ports: order on stdin, answer on stdout.
    Porter,
    /// Find out what works on this machine: answer on stdout.
    Probe,
}

impl Task {
    /// The first argument that asks for it.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Task::Fetch => FETCH,
            Task::Shim => SHIM,
            Task::SealedShim => SEALED_SHIM,
            Task::Porter => PORTER,
            Task::Probe => PROBE,
        }
    }

    fn parse(argument: &str) -> Option<Self> {
        [Task::Fetch, Task::Shim, Task::SealedShim, Task::Porter, Task::Probe]
            .into_iter()
            .find(|task| task.argument() == argument)
    }
}

/// Runs the hidden sub-process that the arguments ask for, if they ask for one.
///
/// Must be the first thing in `main`, before any thread or runtime exists: the container library
/// forks, and a fork of a process with threads is a process that may hang.
pub fn child_main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let task = Task::parse(arguments.next()?.to_str()?)?;
    let directory: OsString = arguments.next().unwrap_or_default();
    let directory = Path::new(&directory);
    Some(match task {
        Task::Fetch => image::fetch::child(),
        Task::Shim => shim::seal::child(directory),
        Task::SealedShim => shim::child(directory),
        Task::Porter => porter::child::child(directory),
        Task::Probe => probe::child(directory),
    })
}

/// Why a child that was started did not say that it is ready.
pub(crate) enum NoWord {
    /// It can't be: its own error.
    Refused(Error),
    /// It can't be started or heard.
    Failed(std::io::Error),
    /// It took too long.
    Late,
    /// It ended without a word.
    Ended,
}

/// Starts a child that shall outlive us, and waits for it to [`tell`] that it is ready. One that is
/// not, or that nobody waits for any more, is ended.
pub(crate) async fn first_word<T: DeserializeOwned>(
    mut command: Command,
    patience: Duration,
) -> Result<T, NoWord> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(NoWord::Failed)?;
    let unready = Unready::of(child.id());
    let mut word = Vec::new();
    let read = async {
        match child.stdout.take() {
            Some(mut stdout) => stdout.read_to_end(&mut word).await,
            None => Ok(0),
        }
    };
    match tokio::time::timeout(patience, read).await {
        Ok(read) => read.map_err(NoWord::Failed)?,
        Err(_) => return Err(NoWord::Late),
    };
    let told: Result<T, Error> = serde_json::from_slice(&word).map_err(|_| NoWord::Ended)?;
    let told = told.map_err(NoWord::Refused)?;
    unready.keep();
    Ok(told)
}

/// A child that has not said yet that it is ready: it ends with who waits for it.
struct Unready(Option<OwnedFd>);

impl Unready {
    fn of(id: Option<u32>) -> Self {
        let pid = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unready {
    fn drop(&mut self) {
        if let Some(pidfd) = &self.0 {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}

/// In a child: tells the server, if it still listens, whether it is ready, and no more than that.
pub(crate) fn tell<T: Serialize>(ready: &Result<T, Error>) {
    let mut stdout = std::io::stdout().lock();
    let _ = serde_json::to_writer(&mut stdout, ready);
    let _ = stdout.flush();
    drop(stdout);
    // Its end of the pipe closes: there is nothing more to hear.
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

/// In a child: closes all but the standard three. What its starter has left open to programs that
/// it starts would stay open for as long as it lives.
pub(crate) fn close_others() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> =
        open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        let _ = nix::unistd::close(number);
    }
}
