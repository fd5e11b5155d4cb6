//! The first process of a container: starts the program, hands on signals, buries the dead.
//!
//! It is not another program but this one, forked into the container: images need not have what
//! ours is linked to. A program of its own as first process would ignore SIGTERM unless it was
//! written for that place, and would not wait for orphans.

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
use crate::child::close_others;
use crate::raw;

/// What the first process starts.
#[derive(Debug, Clone)]
pub(super) struct Pid1 {
    program: Program,
}

/// A program: its file inside the image, and its words.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    pub(super) words: Vec<String>,
}

impl Pid1 {
    pub(super) fn new(program: Program) -> Self {
        Self { program }
    }

    fn run(&self) -> io::Result<i32> {
        // The library only marks its files to be closed by the next program; here there is none.
        close_others();
        // Before anything of the image runs, and for this process too. No filter, no container.
        seccomp::apply()?;
        // Blocked before there is anyone to hand signals to: none is lost, they wait.
        SigSet::all().thread_set_mask()?;
        let name = self.program.words.first().cloned().unwrap_or_default();
        let mut command = Command::new(&self.program.file);
        command.arg0(&name).args(self.program.words.iter().skip(1));
        let started = raw::unblock_signals(&mut command).spawn();
        match started {
            Ok(child) => Ok(mind(i32::try_from(child.id()).unwrap_or(-1))),
            Err(error) => {
                let _ = writeln!(io::stderr(), "paddock: {name} can't be run: {error}");
                Ok(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
            }
        }
    }
}

impl Executor for Pid1 {
    /// Never returns: with the first process the whole container ends.
    fn exec(&self, _spec: &Spec) -> Result<(), ExecutorError> {
        let code = self.run().unwrap_or_else(|error| {
            let _ = writeln!(io::stderr(), "paddock: {error}");
            126
        });
        std::process::exit(code)
    }

    /// The shim has looked already, with a better sentence.
    fn validate(&self, _spec: &Spec) -> Result<(), ExecutorValidationError> {
        Ok(())
    }
}

/// Hands signals on until the program has ended; its code.
fn mind(child: i32) -> i32 {
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
