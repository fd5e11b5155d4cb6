//! Shim: one small process per container, which outlives the server.
//!
//! Single-threaded, since the container library forks. The shim starts the container, writes its
//! logs, waits for its exit, restarts it according to its restart policy, and records its state in
//! `state.json`. SIGTERM makes it stop the container and exit.

mod config;
mod disk;
mod events;
mod init;
mod log;
mod lookup;
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
use super::child::report_ready;
use super::dirs::{read_json, write_json};
use super::network::attach;
use super::plan::{Bundle, End, Phase, Plan, State};
use super::unpack::overlay;
use super::userns::{self, LayerIds, Namespaces};
pub(crate) use disk::{Disk, DiskKind, probe as probe_disk};
pub(crate) use log::{Record, file_name as log_file_name, numbers as log_numbers};

use events::Events;
use log::Log;
use run::Run;

/// A container that ran this long has recovered: the backoff starts over.
const BACKOFF_RESET: Duration = Duration::from_mins(1);

/// Entry point of the helper process, after its program was sealed.
pub(crate) fn child(directory: &Path) -> ExitCode {
    let bundle = Bundle(directory.to_owned());
    match Shim::prepare(bundle) {
        Ok(shim) => shim.supervise(),
        Err(error) => {
            report_ready::<()>(&Err(error));
            ExitCode::FAILURE
        }
    }
}

struct Shim {
    bundle: Bundle,
    plan: Plan,
    state: State,
    events: Events,
    log: Log,
    /// User namespace of the container, which survives its restarts.
    namespaces: Option<Namespaces>,
    /// Held as long as the shim lives.
    _lock: File,
}

impl Shim {
    fn prepare(bundle: Bundle) -> Result<Self, Error> {
        let events = Events::new()?;
        let lock = File::create(bundle.lock()).map_err(|e| failed("Locking the bundle", e))?;
        acquire(&lock).map_err(|e| failed("Locking the bundle", e))?;
        let plan: Plan = read_json(&bundle.plan())
            .ok_or_else(|| Error::Helper("Plan of the container is missing.".to_owned()))?;
        let state = State { shim: pid(), ..State::default() };
        write_json(&bundle.state(), &state).map_err(|e| failed("Writing the state", e))?;
        let namespaces = plan.user_ns.map(|user_ns| Namespaces::new(user_ns.first_id)).transpose();
        let namespaces = namespaces.map_err(|e| failed("Creating the user namespace", e))?;
        attach::attach(&plan.link, namespaces.as_ref())?;
        mount_root(&bundle, &plan, namespaces.as_ref())
            .map_err(|e| failed("Mounting the rootfs", e))?;
        let log = Log::open(&bundle.logs(), plan.max_log_bytes, plan.log_files)
            .map_err(|e| failed("Opening the log", e))?;
        Ok(Self { bundle, plan, state, events, log, namespaces, _lock: lock })
    }

    /// Runs the container, with restarts, until it has ended.
    fn supervise(mut self) -> ExitCode {
        let mut wait = Duration::from_millis(self.plan.restart_first_ms);
        let most = Duration::from_millis(self.plan.restart_most_ms);
        let mut is_reported = false;
        loop {
            let began = base::monotonic();
            let user = self.namespaces.as_ref().map(|namespaces| &namespaces.user);
            let end = match Run::start(&self.bundle, &self.plan, user, self.state.restarts) {
                Ok(run) => {
                    self.enter(Phase::Running, Some(run.pid()));
                    if !std::mem::replace(&mut is_reported, true) {
                        report_ready(&Ok(()));
                    }
                    run.follow(&self.plan, &mut self.events, &mut self.log)
                }
                Err(error) if !is_reported => {
                    self.end(End { reason: error.to_string(), ..End::default() });
                    report_ready::<()>(&Err(error));
                    return ExitCode::FAILURE;
                }
                Err(error) => End { reason: error.to_string(), ..End::default() },
            };
            if began.elapsed() >= BACKOFF_RESET {
                wait = Duration::from_millis(self.plan.restart_first_ms);
            }
            if self.events.is_stopped() || !self.is_restarted_after(&end) {
                self.end(end);
                return ExitCode::SUCCESS;
            }
            self.state.last = Some(end);
            self.state.restarts = self.state.restarts.saturating_add(1);
            self.state.wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            self.enter(Phase::Waiting, None);
            if self.events.sleep(wait) {
                self.enter(Phase::Ended, None);
                return ExitCode::SUCCESS;
            }
            wait = (wait * 2).min(most);
        }
    }

    fn is_restarted_after(&self, end: &End) -> bool {
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

    /// Writes the state. A full disk must not end the container; the server sees an older state.
    fn save(&self) {
        if let Err(error) = write_json(&self.bundle.state(), &self.state) {
            let _ = writeln!(std::io::stderr(), "state.json: {error}");
        }
    }
}

/// Mounts the container's root directory, with the ids of its user namespace.
fn mount_root(
    bundle: &Bundle,
    plan: &Plan,
    namespaces: Option<&Namespaces>,
) -> std::io::Result<()> {
    let writable = match &plan.disk {
        Some(disk) => {
            let directory = bundle.at("disk");
            disk.mount(&bundle.at("disk.img"), &directory)?;
            directory
        }
        None => bundle.path().to_owned(),
    };
    let (upper, work) = (writable.join("upper"), writable.join("work"));
    let (root, empty, mapped) = (bundle.at("root"), bundle.at("empty"), bundle.at("layers"));
    for directory in [&upper, &work, &root, &empty, &mapped] {
        std::fs::create_dir_all(directory)?;
    }
    let is_idmapped = plan.user_ns.is_some_and(|user| user.layers == LayerIds::Idmapped);
    let layers = match namespaces {
        Some(namespaces) if is_idmapped => {
            namespaces.mount_idmapped(&plan.layers, &mapped)?;
            &mapped
        }
        _ => &plan.layers,
    };
    let mut layers: Vec<_> = plan.image.layers.iter().map(|id| layers.join(id)).collect();
    if layers.is_empty() {
        layers.push(empty);
    }
    // The rootfs shows the mode of the topmost directory, which is `upper`.
    let owner = Some(plan.user_ns.map_or(0, |user| user.first_id));
    std::os::unix::fs::chown(&upper, owner, owner)?;
    std::fs::set_permissions(&upper, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    match plan.user_ns {
        Some(user) if user.layers == LayerIds::Chowned => {
            overlay::mount(&layers, &upper, &work, &root, overlay::COPY_METADATA)?;
            userns::chown_tree(&root, user.first_id)?;
        }
        _ => overlay::mount(&layers, &upper, &work, &root, overlay::COPY_WHOLE)?,
    }
    if plan.user_ns.is_some() { userns::expose(bundle.path()) } else { Ok(()) }
}

/// Acquires the lock. A liveness check holds it for a moment, so a few attempts are made.
fn acquire(lock: &File) -> std::io::Result<()> {
    for _ in 0..100 {
        if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(std::io::Error::other("another shim holds it"))
}

fn failed(operation: &str, error: std::io::Error) -> Error {
    Error::io(format!("{operation} failed"), error)
}

fn pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}
