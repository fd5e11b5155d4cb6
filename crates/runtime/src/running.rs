//! What runs, and how it ends.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use model::deployment::Restart;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::dirs::read_json;
use super::plan::{End, Phase, Place, Plan, State, boot_id};
use super::{Condition, Container, Embedded, cgroup, endpoints, message, one_of, plans, porter};

/// How often a state is looked at: a restart that is faster is not seen.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// How long until ports that could not be opened again are tried again.
const MEND_AGAIN: Duration = Duration::from_secs(5);

/// A container of ours that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What it was started as.
    pub container: Container,
    /// Does it run, or wait to be started again?
    pub is_running: bool,
    /// Its first process, while it runs.
    pub pid: Option<i32>,
    /// How often it was started again.
    pub restarts: u32,
    /// How it ended the last time.
    pub last_reason: Option<String>,
    /// The exit code with which it ended the last time.
    pub last_code: Option<i32>,
    /// Was one of its processes killed for lack of memory before that?
    pub is_oom: bool,
    /// How long it waits until it is started again.
    pub wait_ms: u64,
    /// Was its supervisor killed, so that nobody knows how it ended?
    pub is_lost: bool,
    /// Where its ports can be reached.
    pub endpoints: Vec<String>,
}

impl Embedded {
    /// What of ours exists.
    pub fn list(&self) -> Vec<Listed> {
        plans(&self.dirs).into_iter().map(|plan| self.describe(plan)).collect()
    }

    /// A container of ours, if it exists.
    pub fn get(&self, name: &str) -> Option<Listed> {
        super::container::check_name(name).ok()?;
        read_json(&self.place(name).plan()).map(|plan| self.describe(plan))
    }

    fn describe(&self, plan: Plan) -> Listed {
        let place = self.place(&plan.container.name);
        // In this order: a shim says how it ended before it ends.
        let is_running = plan.boot == boot_id() && is_alive(&place);
        let state: State = read_json(&place.state()).unwrap_or_default();
        let last = state.last.as_ref();
        Listed {
            is_running,
            pid: state.pid.filter(|_| is_running),
            restarts: state.restarts,
            last_code: last.and_then(|end| end.code),
            is_oom: last.is_some_and(|end| end.is_oom),
            wait_ms: state.wait_ms,
            is_lost: !is_running && state.phase != Phase::Ended,
            endpoints: endpoints(&plan),
            last_reason: state.last.map(|end| end.reason),
            container: plan.container,
        }
    }

    /// Returns when a container is doing differently than `seen`.
    ///
    /// One whose supervisor was killed ended with it. If it shall be started again then that happens
    /// here, since nobody else is left to do it.
    pub async fn changed(&self, name: &str, seen: &Condition) -> Condition {
        if super::container::check_name(name).is_err() {
            return Condition::Failed(format!("There is no container {name:?}."));
        }
        let place = self.place(name);
        loop {
            let version = version(&place);
            match look(&place) {
                Look::Is(now) if now != *seen => return now,
                Look::Is(_) if self.mend(name, &place).await => {}
                Look::Is(_) => unlike(&place, version).await,
                Look::Soon => tokio::time::sleep(Duration::from_millis(20)).await,
                Look::Lost => return self.lost(name, seen).await,
            }
        }
    }

    /// Puts another porter in the place of one that was killed; was there something to do?
    async fn mend(&self, name: &str, place: &Place) -> bool {
        // Who is doing something with the container looks after its ports as well.
        let Ok(alone) = one_of(&self.names, name).try_lock_owned() else { return false };
        if !porter::is_lost(place) || !is_alive(place) {
            return false;
        }
        let Some(plan) = read_json::<Plan>(&place.plan()) else { return false };
        tracing::warn!(container = name, "its porter was killed, starting another one");
        if let Err(error) = self.publish(place, plan).await {
            tracing::error!(container = name, %error, "it can't be reached");
            drop(alone);
            tokio::time::sleep(MEND_AGAIN).await;
        }
        true
    }

    async fn lost(&self, name: &str, seen: &Condition) -> Condition {
        let group = self.cgroup(name);
        let _ = tokio::task::spawn_blocking(move || cgroup::remove(&group)).await;
        let plan: Option<Plan> = read_json(&self.place(name).plan());
        let container = plan.map(|plan| plan.container);
        let again = container.filter(|container| container.restart != Restart::Never);
        let Some(container) = again else {
            return Condition::Failed(
                "Its supervisor was killed, and it with it: start it again.".to_owned(),
            );
        };
        if !matches!(seen, Condition::Restarting { .. }) {
            let killed = "Its supervisor was killed, and it with it.";
            let reason = message::restarting(killed, self.options.restart_first, 1);
            return Condition::Restarting { reason };
        }
        tokio::time::sleep(self.options.restart_first).await;
        Condition::after_start(self.start(&container).await)
    }
}

/// What a container's files say.
enum Look {
    Is(Condition),
    /// It is about to be something.
    Soon,
    /// Its shim is gone and has not said how it ended.
    Lost,
}

fn look(place: &Place) -> Look {
    // In this order: a shim says how it ended before it ends.
    let is_alive = is_alive(place);
    let state: Option<State> = read_json(&place.state());
    let Some(state) = state else {
        let absent = || Condition::Failed("It does not run on this machine.".to_owned());
        return if is_alive { Look::Soon } else { Look::Is(absent()) };
    };
    match state.phase {
        Phase::Ended => Look::Is(ending(state.last)),
        _ if !is_alive => Look::Lost,
        Phase::Starting => Look::Soon,
        Phase::Waiting => Look::Is(Condition::Restarting { reason: restarting(&state) }),
        Phase::Running => {
            let plan: Option<Plan> = read_json(&place.plan());
            let endpoints = plan.as_ref().map(endpoints).unwrap_or_default();
            Look::Is(Condition::Running { endpoints })
        }
    }
}

fn ending(end: Option<End>) -> Condition {
    match end {
        Some(End { code: Some(0), .. }) => Condition::Completed,
        Some(End { reason, .. }) => Condition::Failed(reason),
        None => Condition::Failed("It ended, and nobody knows how.".to_owned()),
    }
}

fn restarting(state: &State) -> String {
    let ended = state.last.as_ref().map_or("It ended.", |end| end.reason.as_str());
    message::restarting(ended, Duration::from_millis(state.wait_ms), state.restarts)
}

/// Tells one state from the next without reading it: each is a new file.
fn version(place: &Place) -> Option<(u64, SystemTime)> {
    let metadata = std::fs::metadata(place.state()).ok()?;
    Some((metadata.ino(), metadata.modified().ok()?))
}

/// Returns when a container's state is not this version any more, or its shim or porter has gone.
async fn unlike(place: &Place, seen: Option<(u64, SystemTime)>) {
    let state: Option<State> = read_json(&place.state());
    let shim = state.filter(|_| is_alive(place)).map(|state| state.shim);
    let ends = async {
        match shim {
            Some(shim) => gone(shim).await,
            None => tokio::time::sleep(LOOK).await,
        }
    };
    let changes = async {
        while version(place) == seen {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! { () = ends => {}, () = changes => {}, () = porter::gone(place) => {} }
}

/// Does a container's shim live? Process ids can be reused, a lock can't.
pub(super) fn is_alive(place: &Place) -> bool {
    is_held(&place.lock())
}

/// Does a living process hold this file?
pub(super) fn is_held(lock: &Path) -> bool {
    let Ok(file) = File::open(lock) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// Something to signal and to wait for a living process by.
pub(super) fn handle(process: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()
}

/// Returns when a process is gone.
pub(super) async fn gone(shim: i32) {
    let Some(handle) = handle(shim) else {
        return tokio::time::sleep(Duration::from_millis(20)).await;
    };
    ended(handle).await;
}

/// Returns when the process of a handle is gone.
pub(super) async fn ended(process: OwnedFd) {
    match super::raw::readable(process) {
        Ok(handle) => drop(handle.readable().await),
        Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
    }
}
