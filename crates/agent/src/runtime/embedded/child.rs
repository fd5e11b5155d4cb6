//! The hidden sub-processes: the same program, started again for one narrow task.
//!
//! Hostile input (registries, layers) and everything that changes a process for good (namespaces,
//! mounts) stays out of the server's own process.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::{image, probe, shim};

/// Marks the first argument of a child.
const FETCH: &str = "runtime:fetch";
const SHIM: &str = "runtime:shim";
const SEALED_SHIM: &str = "runtime:sealed-shim";
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
            Task::Probe => PROBE,
        }
    }

    fn parse(argument: &str) -> Option<Self> {
        [Task::Fetch, Task::Shim, Task::SealedShim, Task::Probe]
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
        Task::Probe => probe::child(directory),
    })
}
