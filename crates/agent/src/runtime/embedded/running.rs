//! What runs, and how it ends.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::dirs::read_json;
use super::plan::{End, Phase, Place, State, boot_id};
use super::{Container, Embedded, Ending, cgroup, endpoints, plans};

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
    /// Where its ports can be reached.
    pub endpoints: Vec<String>,
}

impl Embedded {
    /// What of ours exists.
    pub fn list(&self) -> Vec<Listed> {
        let listed = plans(&self.dirs).into_iter().map(|plan| {
            let place = self.place(&plan.container.name);
            let state: State = read_json(&place.state()).unwrap_or_default();
            let is_running = plan.boot == boot_id() && is_alive(&place);
            Listed {
                is_running,
                pid: state.pid.filter(|_| is_running),
                restarts: state.restarts,
                last_reason: state.last.map(|end| end.reason),
                endpoints: endpoints(&plan),
                container: plan.container,
            }
        });
        listed.collect()
    }

    /// Returns when a container has ended for good.
    pub async fn ended(&self, name: &str) -> Ending {
        if super::container::check_name(name).is_err() {
            return Ending::Failed(format!("There is no container {name:?}."));
        }
        let place = self.place(name);
        loop {
            // In this order: a shim says how it ended before it ends.
            let is_alive = is_alive(&place);
            match read_json::<State>(&place.state()) {
                Some(state) if state.phase == Phase::Ended => return ending(state.last),
                Some(state) if is_alive => gone(state.shim).await,
                None if is_alive => tokio::time::sleep(Duration::from_millis(20)).await,
                None => return Ending::Failed("It does not run on this machine.".to_owned()),
                Some(_) => {
                    let group = self.cgroup(name);
                    let _ = tokio::task::spawn_blocking(move || cgroup::remove(&group)).await;
                    return Ending::Failed(
                        "Its supervisor was killed, and it with it: start it again.".to_owned(),
                    );
                }
            }
        }
    }
}

fn ending(end: Option<End>) -> Ending {
    match end {
        Some(End { code: Some(0), .. }) => Ending::Completed,
        Some(End { reason, .. }) => Ending::Failed(reason),
        None => Ending::Failed("It ended, and nobody knows how.".to_owned()),
    }
}

/// Does a container's shim live? Process ids can be reused, a lock can't.
pub(super) fn is_alive(place: &Place) -> bool {
    let Ok(file) = File::open(place.lock()) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// Something to signal and to wait for a living shim by.
pub(super) fn handle(shim: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(shim)?, PidfdFlags::empty()).ok()
}

/// Returns when a process is gone.
pub(super) async fn gone(shim: i32) {
    let Some(handle) = handle(shim) else {
        return tokio::time::sleep(Duration::from_millis(20)).await;
    };
    match super::raw::readable(handle) {
        Ok(handle) => drop(handle.readable().await),
        Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
    }
}
