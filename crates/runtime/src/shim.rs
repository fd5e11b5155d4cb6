//! The shim: one small process per container, which outlives the server.
//!
//! Single-threaded, since the container library forks. It starts the container, writes its logs,
//! waits for its end, starts it again if that is asked for, and says where things are in
//! `state.json`. SIGTERM tells it to stop the container and end.

mod bundle;
mod events;
mod log;
mod pid1;
mod program;
mod run;
pub(crate) mod seal;
mod seccomp;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use model::deployment::Restart;
use rustix::fs::{FlockOperation, flock};

use super::Error;
use super::child::tell;
use super::dirs::{read_json, write_json};
use super::network::attach;
use super::plan::{End, Phase, Place, Plan, State};
use super::unpack::overlay;
pub(crate) use log::{Record, file_name as log_file_name, numbers as log_numbers};

use events::Events;
use log::Log;
use run::Run;

/// A container that ran this long has recovered: the next wait is short again.
const RECOVERED: Duration = Duration::from_mins(1);

/// The child, its program sealed.
pub(crate) fn child(directory: &Path) -> ExitCode {
    let place = Place(directory.to_owned());
    match Shim::prepare(place) {
        Ok(shim) => shim.keep(),
        Err(error) => {
            tell::<()>(&Err(error));
            ExitCode::FAILURE
        }
    }
}

struct Shim {
    place: Place,
    plan: Plan,
    state: State,
    events: Events,
    log: Log,
    /// Held until the end.
    _lock: File,
}

impl Shim {
    fn prepare(place: Place) -> Result<Self, Error> {
        let events = Events::new()?;
        let lock = File::create(place.lock()).map_err(|e| trouble("lock its directory", e))?;
        take(&lock).map_err(|e| trouble("lock its directory", e))?;
        let plan: Plan = read_json(&place.plan())
            .ok_or_else(|| Error::Helper("The container has no plan.".to_owned()))?;
        let state = State { shim: pid(), ..State::default() };
        write_json(&place.state(), &state).map_err(|e| trouble("write its state", e))?;
        if let Some(link) = &plan.link {
            attach::attach(link)?;
        }
        let layers: Vec<_> = plan.image.layers.iter().map(|id| plan.layers.join(id)).collect();
        mount_root(&place, &layers).map_err(|e| trouble("mount its image", e))?;
        let log = Log::open(&place.logs(), plan.max_log_bytes, plan.log_files)
            .map_err(|e| trouble("open its log", e))?;
        Ok(Self { place, plan, state, events, log, _lock: lock })
    }

    /// Keeps the container as its plan says, until it has ended for good.
    fn keep(mut self) -> ExitCode {
        let mut wait = Duration::from_millis(self.plan.restart_first_ms);
        let most = Duration::from_millis(self.plan.restart_most_ms);
        let mut told = false;
        loop {
            let began = base::monotonic();
            let end = match Run::start(&self.place, &self.plan, self.state.restarts) {
                Ok(run) => {
                    self.enter(Phase::Running, Some(run.pid()));
                    if !std::mem::replace(&mut told, true) {
                        tell(&Ok(()));
                    }
                    run.follow(&self.plan, &mut self.events, &mut self.log)
                }
                Err(error) if !told => {
                    self.end(End { reason: error.to_string(), ..End::default() });
                    tell::<()>(&Err(error));
                    return ExitCode::FAILURE;
                }
                Err(error) => End { reason: error.to_string(), ..End::default() },
            };
            if began.elapsed() >= RECOVERED {
                wait = Duration::from_millis(self.plan.restart_first_ms);
            }
            if self.events.is_stopped() || !self.again(&end) {
                self.end(end);
                return ExitCode::SUCCESS;
            }
            self.state.last = Some(end);
            self.state.restarts = self.state.restarts.saturating_add(1);
            self.state.wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            self.enter(Phase::Waiting, None);
            if self.events.rest(wait) {
                self.enter(Phase::Ended, None);
                return ExitCode::SUCCESS;
            }
            wait = (wait * 2).min(most);
        }
    }

    fn again(&self, end: &End) -> bool {
        match self.plan.container.restart {
            Restart::Never => false,
            Restart::OnFailure => end.code != Some(0),
            Restart::Always => true,
        }
    }

    fn enter(&mut self, phase: Phase, pid: Option<i32>) {
        (self.state.phase, self.state.pid) = (phase, pid);
        self.save();
    }

    fn end(&mut self, end: End) {
        self.state.last = Some(end);
        self.enter(Phase::Ended, None);
    }

    /// A full disk must not end the container; the server then sees an older state.
    fn save(&self) {
        if let Err(error) = write_json(&self.place.state(), &self.state) {
            let _ = writeln!(std::io::stderr(), "state.json: {error}");
        }
    }
}

fn mount_root(place: &Place, layers: &[std::path::PathBuf]) -> std::io::Result<()> {
    for name in ["upper", "work", "root", "empty"] {
        std::fs::create_dir_all(place.at(name))?;
    }
    let empty = [place.at("empty")];
    let layers = if layers.is_empty() { &empty[..] } else { layers };
    let upper = place.at("upper");
    // The container's root shows the mode of the topmost directory, which is this one.
    std::os::unix::fs::chown(&upper, Some(0), Some(0))?;
    std::fs::set_permissions(&upper, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    overlay::mount(layers, &upper, &place.at("work"), &place.at("root"))
}

/// Takes the lock. Who looks whether it is held holds it for a moment: a few tries.
fn take(lock: &File) -> std::io::Result<()> {
    for _ in 0..100 {
        if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(std::io::Error::other("another shim holds it"))
}

fn trouble(what: &str, error: std::io::Error) -> Error {
    Error::io(format!("The container could not {what}"), error)
}

fn pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}
