//! One run of a container's program: from its creation to the removal of what it leaves.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use model::log::Source;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitStatus, kill_process};

use super::bundle;
use super::events::{Events, reap};
use super::log::Log;
use super::pid1::Pid1;
use crate::Error;
use crate::cgroup;
use crate::message;
use crate::plan::{End, Place, Plan};

/// A run under way.
pub(super) struct Run {
    container: libcontainer::container::Container,
    pid: i32,
    outputs: Vec<Output>,
}

struct Output {
    source: Source,
    pipe: File,
}

impl Run {
    /// Creates and starts it. The error says why not.
    pub(super) fn start(place: &Place, plan: &Plan, count: u32) -> Result<Self, Error> {
        let program = bundle::write(place, plan)?;
        let (out, stdout) = pipe()?;
        let (err, stderr) = pipe()?;
        let stdin = File::open("/dev/null").map_err(unstarted)?;
        let id = format!("{}.{count}", plan.container.name);
        let pid1 = Pid1::new(program);
        let built = ContainerBuilder::new(id, SyscallType::default())
            .with_root_path(place.at("oci"))
            .map(|builder| builder.with_executor(pid1).with_stdin(stdin))
            .map(|builder| builder.with_stdout(stdout).with_stderr(stderr))
            .and_then(|builder| {
                builder.as_init(place.path()).with_systemd(false).with_detach(true).build()
            })
            .and_then(|mut container| container.start().map(|()| container));
        let container = built.map_err(|error| {
            cgroup::remove(&plan.cgroup);
            reap();
            unstarted(std::io::Error::other(chain(&error)))
        })?;
        let pid = container.state.pid.unwrap_or(0);
        let outputs = vec![
            Output { source: Source::Stdout, pipe: out },
            Output { source: Source::Stderr, pipe: err },
        ];
        Ok(Self { container, pid, outputs })
    }

    /// The container's first process.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Writes its logs until it ends, by itself or because the shim was told to stop.
    pub(super) fn follow(mut self, plan: &Plan, events: &mut Events, log: &mut Log) -> End {
        let grace = Duration::from_millis(plan.stop_grace_ms);
        let mut kill_at = None;
        let status = loop {
            self.read(log);
            if let Some((_, status)) = reap().into_iter().find(|(pid, _)| *pid == self.pid) {
                break status;
            }
            if events.is_stopped() {
                match kill_at {
                    None => {
                        self.signal(Signal::TERM);
                        kill_at = Some(base::monotonic() + grace);
                    }
                    Some(at) if at <= base::monotonic() => {
                        self.signal(Signal::KILL);
                        kill_at = Some(base::monotonic() + grace);
                    }
                    Some(_) => {}
                }
            }
            let readers: Vec<_> = self.outputs.iter().map(|output| output.pipe.as_fd()).collect();
            events.wait(&readers, kill_at);
        };
        self.read(log);
        log.flush();
        let oom_kills = cgroup::oom_kills(&plan.cgroup);
        let removed = self.container.delete(true);
        cgroup::remove(&plan.cgroup);
        if let Err(error) = removed {
            let _ = std::fs::remove_dir_all(&self.container.root);
            log.say(&format!("paddock: {}", chain(&error)));
        }
        if events.is_stopped() {
            return End { code: Some(0), reason: "It was stopped.".to_owned(), is_oom: false };
        }
        explain(status, oom_kills, plan)
    }

    /// Its first process has not been waited for: the number can't mean another one.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Takes what there is, and gives up a pipe when its writers are gone.
    fn read(&mut self, log: &mut Log) {
        let mut buffer = [0; 16 << 10];
        self.outputs.retain_mut(|output| {
            // A bound, so that a container that never stops writing can't keep us from all else.
            for _ in 0..64 {
                match output.pipe.read(&mut buffer) {
                    Ok(0) => return false,
                    Ok(n) => log.write(output.source, &buffer[..n]),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
                }
            }
            true
        });
    }
}

/// A pipe whose reading end does not block.
fn pipe() -> Result<(File, OwnedFd), Error> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(unstarted)?;
    rustix::io::ioctl_fionbio(&reader, true).map_err(unstarted)?;
    Ok((File::from(reader), writer))
}

fn unstarted(cause: impl Into<std::io::Error>) -> Error {
    Error::io("The container could not be started", cause)
}

/// An error with all that is below it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        next = error.source();
    }
    text
}

/// How it ended, as a sentence.
fn explain(status: WaitStatus, oom_kills: u64, plan: &Plan) -> End {
    // The first process tells the end of the program by a signal as shells do.
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => -1,
    };
    let is_oom = oom_kills > 0;
    let reason = message::ended(code, is_oom, plan.container.ram_bytes());
    End { code: Some(code), reason, is_oom }
}
