//! Waits for signals, output of the container and timeouts.

use base::Instant;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Error;

/// The shim's signals, delivered through a signalfd.
pub(super) struct Events {
    signals: SignalFd,
    stopped: bool,
}

impl Events {
    /// Blocks the signals and receives them through the signalfd from now on.
    pub(super) fn new() -> Result<Self, Error> {
        let signals = || -> nix::Result<SignalFd> {
            let mut set = SigSet::empty();
            for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD] {
                set.add(signal);
            }
            set.thread_block()?;
            SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        };
        let signals = signals().map_err(|e| Error::io("Receiving signals failed", e))?;
        // Orphans of the container are reparented to the shim, not to the host's pid 1.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|e| Error::io("Becoming a subreaper failed", e))?;
        Ok(Self { signals, stopped: false })
    }

    /// Whether the shim received a signal to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Waits for a signal or for something to read, at most until `deadline`.
    pub(super) fn wait(&mut self, readers: &[BorrowedFd<'_>], deadline: Option<Instant>) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        fds.extend(readers.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        let left = deadline.map(|at| at.saturating_duration_since(base::monotonic()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // Interrupted or not, the caller checks again.
        let _ = poll(&mut fds, left.as_ref());
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                self.stopped = true;
            }
        }
    }

    /// Sleeps; returns true if a signal to stop arrived.
    pub(super) fn sleep(&mut self, time: Duration) -> bool {
        let until = base::monotonic() + time;
        while !self.stopped && base::monotonic() < until {
            self.wait(&[], Some(until));
            reap();
        }
        self.stopped
    }
}

/// Reaps exited children and returns their exit statuses.
pub(super) fn reap() -> Vec<(i32, rustix::process::WaitStatus)> {
    let mut ended = Vec::new();
    while let Ok(Some((pid, status))) = rustix::process::wait(rustix::process::WaitOptions::NOHANG)
    {
        ended.push((pid.as_raw_pid(), status));
    }
    ended
}
