//! Lists containers and watches their condition.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use model::deployment::Restart;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::dirs::read_json;
use super::plan::{Bundle, End, Phase, Plan, State, boot_id};
use super::{
    Condition, Container, Embedded, cgroup, endpoints, forwarder, message, named_lock, plans,
};

/// Poll interval of state files; a faster restart goes unnoticed.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Pause before another attempt to publish ports.
const PUBLISH_RETRY: Duration = Duration::from_secs(5);

/// Status of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerStatus {
    /// Its specification.
    pub container: Container,
    /// Whether it runs or waits for its restart.
    pub is_running: bool,
    /// Its pid 1, while it runs.
    pub pid: Option<i32>,
    /// Number of restarts.
    pub restarts: u32,
    /// Message of its last exit.
    pub last_reason: Option<String>,
    /// Exit code of its last exit.
    pub last_code: Option<i32>,
    /// Whether one of its processes was OOM-killed before that exit.
    pub is_oom: bool,
    /// Its memory limit.
    pub ram_bytes: Option<i64>,
    /// Backoff before its next restart.
    pub wait_ms: u64,
    /// Whether its shim was killed, so that its exit is unknown.
    pub is_lost: bool,
    /// Host addresses of its published ports.
    pub endpoints: Vec<String>,
}

impl Embedded {
    /// Lists all containers.
    pub fn list(&self) -> Vec<ContainerStatus> {
        plans(&self.dirs).into_iter().map(|plan| self.describe(plan)).collect()
    }

    /// Returns a container's status, if it exists.
    pub fn get(&self, name: &str) -> Option<ContainerStatus> {
        super::container::check_name(name).ok()?;
        read_json(&self.bundle(name).plan()).map(|plan| self.describe(plan))
    }

    fn describe(&self, plan: Plan) -> ContainerStatus {
        let bundle = self.bundle(&plan.container.name);
        // In this order: a shim writes the exit before it ends.
        let is_running = plan.boot == boot_id() && is_alive(&bundle);
        let state: State = read_json(&bundle.state()).unwrap_or_default();
        let last = state.last.as_ref();
        ContainerStatus {
            is_running,
            pid: state.pid.filter(|_| is_running),
            restarts: state.restarts,
            last_code: last.and_then(|end| end.code),
            is_oom: last.is_some_and(|end| end.is_oom),
            ram_bytes: plan.ram_bytes(),
            wait_ms: state.wait_ms,
            is_lost: !is_running && state.phase != Phase::Ended,
            endpoints: endpoints(&plan),
            last_reason: state.last.map(|end| end.reason),
            container: plan.container,
        }
    }

    /// Returns when the condition of a container differs from `last`.
    ///
    /// A container ends with its shim. If the restart policy demands a restart after the shim was
    /// killed, this call performs it: no shim is left to do so.
    pub async fn changed(&self, name: &str, last: &Condition) -> Condition {
        if super::container::check_name(name).is_err() {
            return Condition::Failed(format!("Container {name:?} does not exist."));
        }
        let bundle = self.bundle(name);
        loop {
            let version = version(&bundle);
            match observe(&bundle) {
                Observation::Settled(now) if now != *last => return now,
                Observation::Settled(_) if self.repair_forwarder(name, &bundle).await => {}
                Observation::Settled(_) => wait_for_change(&bundle, version).await,
                Observation::Transient => tokio::time::sleep(Duration::from_millis(20)).await,
                Observation::Lost => return self.restart_lost(name, last).await,
            }
        }
    }

    /// Replaces a killed forwarder. Returns whether one was killed.
    async fn repair_forwarder(&self, name: &str, bundle: &Bundle) -> bool {
        // An operation on the container that is under way publishes its ports itself.
        let Ok(guard) = named_lock(&self.container_locks, name).try_lock_owned() else {
            return false;
        };
        if !forwarder::is_lost(bundle) || !is_alive(bundle) {
            return false;
        }
        let Some(plan) = read_json::<Plan>(&bundle.plan()) else { return false };
        tracing::warn!(container = name, "port forwarder was killed, starting another");
        if let Err(error) = self.publish(bundle, plan).await {
            tracing::error!(container = name, %error, "publishing ports failed");
            drop(guard);
            tokio::time::sleep(PUBLISH_RETRY).await;
        }
        true
    }

    async fn restart_lost(&self, name: &str, last: &Condition) -> Condition {
        let group = self.cgroup(name);
        let _ = tokio::task::spawn_blocking(move || cgroup::remove(&group)).await;
        let plan: Option<Plan> = read_json(&self.bundle(name).plan());
        let container = plan.map(|plan| plan.container);
        let restarts = container.filter(|container| container.restart != Restart::Never);
        let Some(container) = restarts else {
            return Condition::Failed("Shim was killed, and the container with it.".to_owned());
        };
        if !matches!(last, Condition::Restarting { .. }) {
            let killed = "Shim was killed, and the container with it.";
            let reason = message::restarting(killed, self.options.restart_backoff, 1);
            return Condition::Restarting { reason };
        }
        tokio::time::sleep(self.options.restart_backoff).await;
        Condition::after_start(self.start(&container).await)
    }
}

/// State of a container according to its files.
enum Observation {
    Settled(Condition),
    /// The condition is about to be written.
    Transient,
    /// The shim ended without recording an exit.
    Lost,
}

fn observe(bundle: &Bundle) -> Observation {
    // In this order: a shim writes the exit before it ends.
    let is_alive = is_alive(bundle);
    let state: Option<State> = read_json(&bundle.state());
    let Some(state) = state else {
        let missing = Condition::Failed("Container does not exist on this machine.".to_owned());
        return if is_alive { Observation::Transient } else { Observation::Settled(missing) };
    };
    match state.phase {
        Phase::Ended => Observation::Settled(exit_condition(state.last)),
        _ if !is_alive => Observation::Lost,
        Phase::Starting => Observation::Transient,
        Phase::Waiting => {
            Observation::Settled(Condition::Restarting { reason: restart_message(&state) })
        }
        Phase::Running => {
            let plan: Option<Plan> = read_json(&bundle.plan());
            let endpoints = plan.as_ref().map(endpoints).unwrap_or_default();
            Observation::Settled(Condition::Running { endpoints })
        }
    }
}

fn exit_condition(end: Option<End>) -> Condition {
    match end {
        Some(End { code: Some(0), .. }) => Condition::Completed,
        Some(End { reason, .. }) => Condition::Failed(reason),
        None => Condition::Failed("Exited with an unknown code.".to_owned()),
    }
}

fn restart_message(state: &State) -> String {
    let exited = state.last.as_ref().map_or("Exited.", |end| end.reason.as_str());
    message::restarting(exited, Duration::from_millis(state.wait_ms), state.restarts)
}

/// Version of a state file: each write creates a new file.
fn version(bundle: &Bundle) -> Option<(u64, SystemTime)> {
    let metadata = std::fs::metadata(bundle.state()).ok()?;
    Some((metadata.ino(), metadata.modified().ok()?))
}

/// Returns when the state file changes or the shim or forwarder ends.
async fn wait_for_change(bundle: &Bundle, last: Option<(u64, SystemTime)>) {
    let state: Option<State> = read_json(&bundle.state());
    let shim = state.filter(|_| is_alive(bundle)).map(|state| state.shim);
    let ends = async {
        match shim {
            Some(shim) => process_ended(shim).await,
            None => tokio::time::sleep(POLL_INTERVAL).await,
        }
    };
    let changes = async {
        while version(bundle) == last {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! { () = ends => {}, () = changes => {}, () = forwarder::ended(bundle) => {} }
}

/// Whether the shim of a container runs. Process ids are reused; locks are not.
pub(super) fn is_alive(bundle: &Bundle) -> bool {
    is_locked(&bundle.lock())
}

/// Whether a process holds an exclusive lock on this file.
pub(super) fn is_locked(lock: &Path) -> bool {
    let Ok(file) = File::open(lock) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// Opens a pidfd, to signal a process and to wait for it.
pub(super) fn pidfd(process: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()
}

/// Returns when a process has ended.
pub(super) async fn process_ended(process: i32) {
    let Some(pidfd) = pidfd(process) else {
        return tokio::time::sleep(Duration::from_millis(20)).await;
    };
    pidfd_ended(pidfd).await;
}

/// Returns when the process of a pidfd has ended.
pub(super) async fn pidfd_ended(process: OwnedFd) {
    match super::raw::readable(process) {
        Ok(handle) => drop(handle.readable().await),
        Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
    }
}
