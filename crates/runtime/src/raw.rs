//! The three things here that have no safe form. The one file with unsafe code.
#![allow(unsafe_code, reason = "each call says why it is sound")]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Puts signals back to how a fresh process has them.
///
/// What the starter of this process had set to be ignored would be ignored in containers too.
/// SIGPIPE stays ignored: a server that dies while it listens to us must not take us along. The
/// standard library gives it back its meaning in programs that it starts.
pub(crate) fn reset_signals() {
    for number in Signal::iterator() {
        if matches!(number, Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGPIPE) {
            continue;
        }
        // SAFETY: the default disposition runs no code of ours, so nothing can be unsound in it.
        let _ = unsafe { signal(number, SigHandler::SigDfl) };
    }
}

/// Has a program start with no signal blocked, whatever its starter blocks.
pub(crate) fn unblock_signals(command: &mut Command) -> &mut Command {
    let unblock = || SigSet::empty().thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec only a system call is made; nothing is allocated or locked.
    unsafe { command.pre_exec(unblock) }
}

/// A descriptor that can be awaited.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by what is returned and stays the same and open until then.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(|error| {
        let (_, error) = error.into_parts();
        error
    })
}
