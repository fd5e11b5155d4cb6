//! The three operations without a safe API. The only file with unsafe code.
#![allow(unsafe_code, reason = "each call says why it is sound")]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Resets signal dispositions to the defaults.
///
/// Signals that this process inherited as ignored would be ignored in containers too. SIGPIPE stays
/// ignored: a server that dies while it reads from this process must not kill it. The standard
/// library restores SIGPIPE in programs that it starts.
pub(crate) fn reset_signals() {
    for number in Signal::iterator() {
        if matches!(number, Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGPIPE) {
            continue;
        }
        // SAFETY: the default disposition runs no user code, so nothing in it can be unsound.
        let _ = unsafe { signal(number, SigHandler::SigDfl) };
    }
}

/// Makes a command start with no signal blocked.
pub(crate) fn unblock_signals(command: &mut Command) -> &mut Command {
    let unblock = || SigSet::empty().thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec only a system call runs; nothing allocates or locks.
    unsafe { command.pre_exec(unblock) }
}

/// Wraps a descriptor so that its readability can be awaited.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the returned value owns the descriptor and keeps it open.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(|error| {
        let (_, error) = error.into_parts();
        error
    })
}
