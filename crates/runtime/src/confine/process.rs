//! Forked processes that are confined, and the messages between them and their parent.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid,
};
use rustix::thread::CapabilitySet;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Place, confine};
use crate::{Error, raw};

/// Maximum size of a message: several documents of a registry.
const MAX_MESSAGE: u64 = 16 << 20;

/// One end of a connection between a confined process and its parent.
pub(crate) struct Channel(BufReader<UnixStream>);

impl Channel {
    /// Sends a message.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        // JSON without line breaks.
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.get_mut().write_all(&line)
    }

    /// Waits for a message. The end of the other process is an error.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut line = Vec::new();
        self.0.by_ref().take(MAX_MESSAGE).read_until(b'\n', &mut line)?;
        match line.last() {
            Some(b'\n') => Ok(serde_json::from_slice(&line)?),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A confined process. Killed when dropped, and when its parent ends.
pub(crate) struct Process {
    /// What it is, for messages.
    name: &'static str,
    /// None when it was reaped: the kernel may then give its id to another process.
    id: Option<Pid>,
    channel: Channel,
}

impl Process {
    /// Forks this process, which must be single-threaded, and confines the new one.
    ///
    /// It retains only the descriptors in `retained`. The result of `f` is its last message.
    pub(crate) fn start<T: Serialize>(
        name: &'static str,
        place: Place<'_>,
        capabilities: CapabilitySet,
        retained: &[RawFd],
        f: impl FnOnce(&mut Channel) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::io(format!("Starting the {name} failed"), error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let child = move || {
            let mut channel = Channel(BufReader::new(theirs));
            let result = enter(&channel, place, capabilities, retained)
                .map_err(|error| Error::io(format!("Confining the {name} failed"), error))
                .and_then(|()| f(&mut channel));
            let _ = channel.send(&result);
        };
        // Neither sees nor signals other processes, which may have the same user.
        let namespaces = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
        let id = raw::spawn(namespaces, child).map_err(failed)?;
        Ok(Self { name, id: Pid::from_raw(id), channel: Channel(BufReader::new(ours)) })
    }

    /// Waits for the next message of the process, or its last.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let received = self.channel.receive();
        received.unwrap_or_else(|error| Err(self.failure(&error)))
    }

    /// Sends a message to the process.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let sent = self.channel.send(message);
        sent.map_err(|error| self.failure(&error))
    }

    fn failure(&mut self, error: &io::Error) -> Error {
        // Only a process that has ended, or is about to, closes its end.
        let ended = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => self.wait(),
            _ => None,
        };
        let why = ended.map_or_else(|| error.to_string(), |status| status.to_string());
        Error::Helper(format!("Unpacking an image failed: {} failed: {why}.", self.name))
    }

    /// Waits until the process has ended.
    fn wait(&mut self) -> Option<ExitStatus> {
        let id = self.id.take()?;
        loop {
            match waitpid(Some(id), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                Ok(Some((_, status))) => return Some(ExitStatus::from_raw(status.as_raw())),
                _ => return None,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let _ = kill_process(id, Signal::KILL);
            self.wait();
        }
    }
}

/// Runs a function in a confined process and returns its result.
pub(crate) fn run<T: Serialize + DeserializeOwned>(
    name: &'static str,
    place: Place<'_>,
    capabilities: CapabilitySet,
    retained: &[RawFd],
    f: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    Process::start(name, place, capabilities, retained, |_| f())?.receive()
}

/// In the new process: gives up everything that it inherited.
fn enter(
    channel: &Channel,
    place: Place<'_>,
    capabilities: CapabilitySet,
    retained: &[RawFd],
) -> io::Result<()> {
    let (Place::Root(directory) | Place::Directory(directory)) = place;
    let channel = channel.0.get_ref().as_fd();
    replace_stdio(retained)?;
    close_others(&[retained, &[channel.as_raw_fd(), directory.as_raw_fd()]].concat())?;
    confine(place, capabilities)?;
    end_with_parent(channel)
}

/// The parent's response goes to its standard output: this process must not write to it.
fn replace_stdio(retained: &[RawFd]) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    if !retained.contains(&0) {
        rustix::stdio::dup2_stdin(&null)?;
    }
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

/// Closes descriptors of the parent, which may lead out of the root directory.
fn close_others(retained: &[RawFd]) -> io::Result<()> {
    let open = std::fs::read_dir("/proc/self/fd")?;
    let numbers = open.map(|entry| {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<RawFd>().ok());
        number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    });
    let numbers = numbers.collect::<io::Result<Vec<_>>>();
    for number in numbers?.into_iter().filter(|number| *number > 2 && !retained.contains(number)) {
        // That of the directory above is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// Ends this process with its parent. After the change of user, which resets it.
fn end_with_parent(channel: BorrowedFd<'_>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut channel = [PollFd::from_borrowed_fd(channel, PollFlags::empty())];
    poll(&mut channel, Some(&rustix::time::Timespec::default()))?;
    if channel[0].revents().contains(PollFlags::HUP) {
        return Err(io::Error::other("the parent has ended"));
    }
    Ok(())
}
