//! The operations without a safe API. The only file with unsafe code.
#![allow(unsafe_code, reason = "each call says why it is sound")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
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

/// Requests to loop devices, from the kernel's `linux/loop.h`.
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
/// The device is detached when its last user closes it.
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// The kernel's `struct loop_info64`; all that is zero here has its default.
#[repr(C)]
#[derive(Default)]
struct LoopInfo {
    positions: [u64; 5],
    numbers: [u32; 3],
    flags: u32,
    names_and_key: [[u8; 32]; 5],
    init: [u64; 2],
}

/// The kernel's `struct loop_config`.
#[repr(C)]
#[derive(Default)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Number of a loop device that is free, or was a moment ago.
pub(crate) fn free_loop_device(control: &File) -> io::Result<i32> {
    // SAFETY: the request takes no argument and accesses no memory.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}

/// Attaches a file to a loop device until the last user of the device closes it.
pub(crate) fn attach_loop_device(device: &File, image: &File) -> io::Result<()> {
    let config = LoopConfig {
        fd: u32::try_from(image.as_raw_fd()).map_err(io::Error::other)?,
        info: LoopInfo { flags: LO_FLAGS_AUTOCLEAR, ..LoopInfo::default() },
        ..LoopConfig::default()
    };
    // SAFETY: the argument has the layout that the request reads, and outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const _: () = assert!(size_of::<LoopConfig>() == 304, "the kernel's size of the structure");
