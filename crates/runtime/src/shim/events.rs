//! What a shim waits for: signals, output of the container, time.

use base::Instant;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Error;

/// The shim's signals, as something that can be waited for.
pub(super) struct Events {
    signals: SignalFd,
    stopped: bool,
}

impl Events {
    /// From now on signals come this way.
    pub(super) fn new() -> Result<Self, Error> {
        let signals = || -> nix::Result<SignalFd> {
            let mut set = SigSet::empty();
            for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD] {
                set.add(signal);
            }
            set.thread_block()?;
            SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        };
        let signals = signals().map_err(|e| Error::io("The shim can't take signals", e))?;
        // What a container leaves behind comes to us, not to the machine's first process.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|e| Error::io("The shim can't adopt processes", e))?;
        Ok(Self { signals, stopped: false })
    }

    /// Was the shim told to stop?
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Waits for a signal or for something to read, at most until `deadline`.
    pub(super) fn wait(&mut self, readers: &[BorrowedFd<'_>], deadline: Option<Instant>) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        fds.extend(readers.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        let left = deadline.map(|at| at.saturating_duration_since(base::monotonic()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // Interrupted or not: whoever waits looks again.
        let _ = poll(&mut fds, left.as_ref());
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                self.stopped = true;
            }
        }
    }

    /// Does nothing for a while; true when told to stop meanwhile.
    pub(super) fn rest(&mut self, time: Duration) -> bool {
        let until = base::monotonic() + time;
        while !self.stopped && base::monotonic() < until {
            self.wait(&[], Some(until));
            reap();
        }
        self.stopped
    }
}

/// Takes note of processes that ended; how, for the one in question.
pub(super) fn reap() -> Vec<(i32, rustix::process::WaitStatus)> {
    let mut ended = Vec::new();
    while let Ok(Some((pid, status))) = rustix::process::wait(rustix::process::WaitOptions::NOHANG)
    {
        ended.push((pid.as_raw_pid(), status));
    }
    ended
}
