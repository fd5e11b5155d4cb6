//! One run of a container, from its creation to its cleanup.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use model::log::Source;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitStatus, kill_process};

use super::config;
use super::events::{Events, reap};
use super::init::Init;
use super::log::Log;
use crate::Error;
use crate::cgroup;
use crate::message;
use crate::plan::{Bundle, End, Plan};

/// A run in progress.
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
    /// Creates and starts the container.
    pub(super) fn start(
        bundle: &Bundle,
        plan: &Plan,
        user_namespace: Option<&OwnedFd>,
        count: u32,
    ) -> Result<Self, Error> {
        let (program, owner) = config::write(bundle, plan, user_namespace)?;
        if let Some(parent) = plan.parent {
            parent.create_below(&plan.cgroup).map_err(not_limited)?;
        }
        let (out, stdout) = pipe(owner)?;
        let (err, stderr) = pipe(owner)?;
        let stdin = File::open("/dev/null").map_err(not_started)?;
        let id = format!("{}.{count}", plan.container.name);
        let init = Init::new(program);
        let built = ContainerBuilder::new(id, SyscallType::default())
            .with_root_path(bundle.at("oci"))
            .map(|builder| builder.with_executor(init).with_stdin(stdin))
            .map(|builder| builder.with_stdout(stdout).with_stderr(stderr))
            .and_then(|builder| {
                builder.as_init(bundle.path()).with_systemd(false).with_detach(true).build()
            })
            .and_then(|mut container| container.start().map(|()| container));
        let container = built.map_err(|error| {
            cgroup::remove(&plan.cgroup);
            reap();
            not_started(std::io::Error::other(chain(&error)))
        })?;
        let pid = container.state.pid.unwrap_or(0);
        let outputs = vec![
            Output { source: Source::Stdout, pipe: out },
            Output { source: Source::Stderr, pipe: err },
        ];
        Ok(Self { container, pid, outputs })
    }

    /// The container's pid 1.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Writes logs until the container exits, by itself or because the shim was told to stop.
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
                        cgroup::kill(&plan.cgroup);
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
            let _ = base::tree::remove(&self.container.root);
            log.write_line(&format!("paddock: {}", chain(&error)));
        }
        if events.is_stopped() {
            return End { code: Some(0), reason: "Stopped.".to_owned(), is_oom: false };
        }
        describe_exit(status, oom_kills, plan)
    }

    /// Signals pid 1. It has not been reaped, so its pid can't belong to another process.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Reads available output, and drops a pipe when its writers have closed it.
    fn read(&mut self, log: &mut Log) {
        let mut buffer = [0; 16 << 10];
        self.outputs.retain_mut(|output| {
            // Bounded, so that a container that writes without pause can't block the shim.
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

/// A pipe with a non-blocking reading end. The container's user owns it and may open it again, as
/// `/dev/stdout`.
fn pipe((uid, gid): (u32, u32)) -> Result<(File, OwnedFd), Error> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(not_started)?;
    rustix::io::ioctl_fionbio(&reader, true).map_err(not_started)?;
    let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
    rustix::fs::fchown(&writer, Some(uid), Some(gid)).map_err(not_started)?;
    Ok((File::from(reader), writer))
}

fn not_started(cause: impl Into<std::io::Error>) -> Error {
    Error::io("Creating the container failed", cause)
}

fn not_limited(cause: std::io::Error) -> Error {
    Error::io("Limiting the containers of this machine failed", cause)
}

/// An error with its sources.
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

fn describe_exit(status: WaitStatus, oom_kills: u64, plan: &Plan) -> End {
    // Pid 1 encodes a program's signal in its exit code, as shells do.
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => -1,
    };
    let is_oom = oom_kills > 0;
    let reason = message::exited(code, is_oom, plan.ram_bytes());
    End { code: Some(code), reason, is_oom }
}
