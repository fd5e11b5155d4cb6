//! The operations without a safe API. The only file with unsafe code.
#![allow(unsafe_code, reason = "each call says why it is sound")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::CloneFlags;
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

/// Forks this process, which must be single-threaded, into new namespaces. Returns 0 in the child.
fn fork(flags: CloneFlags) -> io::Result<i32> {
    let flags = libc::c_long::from(flags.bits()) | libc::c_long::from(libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: like fork: no stack is given, so that both processes continue on copies of this one.
    // No other thread exists that could hold a lock.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    i32::try_from(pid).map_err(io::Error::other)
}

/// Ends a forked process without cleanup that belongs to its parent.
fn exit(code: i32) -> ! {
    // SAFETY: ends the process; no memory is accessed.
    unsafe { libc::_exit(code) }
}

/// Forks a process into new namespaces that waits until the returned descriptor is closed.
pub(crate) fn hold(flags: CloneFlags) -> io::Result<(i32, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match fork(flags)? {
        0 => {
            drop(writer);
            let _ = rustix::io::read(&reader, &mut [0; 1]);
            exit(0)
        }
        child => Ok((child, writer)),
    }
}

/// Waits for a child. Returns its exit code; that of a killed one is an error.
pub(crate) fn wait(child: i32) -> io::Result<i32> {
    use nix::sys::wait::{WaitStatus, waitpid};
    loop {
        match waitpid(nix::unistd::Pid::from_raw(child), None) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(code),
            Ok(status) => return Err(io::Error::other(format!("{status:?}"))),
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Runs a function in a forked process, in new namespaces, and waits for it.
pub(crate) fn run(flags: CloneFlags, f: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let child = fork(flags)?;
    if child == 0 {
        // The error's number is all that fits into an exit code.
        exit(match f() {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().filter(|number| *number < 256).unwrap_or(255),
        });
    }
    match wait(child)? {
        0 => Ok(()),
        255 => Err(io::Error::other("unknown error")),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Runs a function in a forked process, in new namespaces as far as the host permits them. Returns
/// the id of the process, which the caller waits for.
pub(crate) fn spawn(flags: CloneFlags, f: impl FnOnce()) -> io::Result<i32> {
    let child = fork(flags).or_else(|_| fork(CloneFlags::empty()))?;
    if child == 0 {
        // A panic must not continue in code of the parent.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        exit(if ended.is_ok() { 0 } else { 101 });
    }
    Ok(child)
}

/// Shifts the ids of a detached mount to those of a user namespace, and makes it read-only.
pub(crate) fn set_idmap(mount: BorrowedFd<'_>, user: BorrowedFd<'_>) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP | libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::try_from(user.as_raw_fd()).map_err(io::Error::other)?,
    };
    // SAFETY: the path is a string, and the structure has the layout and size that the call reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
