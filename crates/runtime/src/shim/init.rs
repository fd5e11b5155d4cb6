//! Pid 1 of a container: starts the program, forwards signals and reaps zombies.
//!
//! A fork of this process, not another program: images lack the libraries that this one is linked
//! to. The container's own program as pid 1 would ignore SIGTERM unless it installs a handler, and
//! would not reap orphans.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::{Executor, ExecutorError, ExecutorValidationError};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::seccomp;
use crate::child::close_inherited_fds;
use crate::raw;

/// Pid 1 of a container.
#[derive(Debug, Clone)]
pub(super) struct Init {
    program: Program,
}

/// A program: its file inside the image, and its arguments.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    pub(super) args: Vec<String>,
}

impl Init {
    pub(super) fn new(program: Program) -> Self {
        Self { program }
    }

    fn run(&self) -> io::Result<i32> {
        // The library marks its descriptors close-on-exec, but nothing is executed here.
        close_inherited_fds();
        // Before any code of the image runs, and for this process too. No filter, no container.
        seccomp::apply()?;
        // Blocked before the program starts, so that signals stay pending until then.
        SigSet::all().thread_set_mask()?;
        let name = self.program.args.first().cloned().unwrap_or_default();
        let mut command = Command::new(&self.program.file);
        command.arg0(&name).args(self.program.args.iter().skip(1));
        let started = raw::unblock_signals(&mut command).spawn();
        match started {
            Ok(child) => Ok(forward_signals(i32::try_from(child.id()).unwrap_or(-1))),
            Err(error) => {
                let _ = writeln!(io::stderr(), "paddock: cannot run {name}: {error}");
                Ok(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
            }
        }
    }
}

impl Executor for Init {
    /// Never returns: the container ends with its pid 1.
    fn exec(&self, _spec: &Spec) -> Result<(), ExecutorError> {
        let code = self.run().unwrap_or_else(|error| {
            let _ = writeln!(io::stderr(), "paddock: {error}");
            126
        });
        std::process::exit(code)
    }

    /// The shim has validated the program already, with a better message.
    fn validate(&self, _spec: &Spec) -> Result<(), ExecutorValidationError> {
        Ok(())
    }
}

/// Forwards signals until the program exits. Returns its exit code.
fn forward_signals(child: i32) -> i32 {
    let child = Pid::from_raw(child);
    loop {
        match SigSet::all().wait() {
            Ok(Signal::SIGCHLD) => {}
            Ok(signal) => {
                let _ = kill(child, signal);
                continue;
            }
            Err(_) => continue,
        }
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            match status {
                WaitStatus::Exited(pid, code) if pid == child => return code,
                WaitStatus::Signaled(pid, signal, _) if pid == child => return 128 + signal as i32,
                WaitStatus::StillAlive => break,
                _ => {}
            }
        }
    }
}
