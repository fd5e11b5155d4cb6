//! Stops and removes containers.

use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};
use tokio::task::JoinHandle;

use super::dirs::read_json;
use super::plan::{Bundle, Plan, State};
use super::running::{is_alive, pidfd, process_ended};
use super::{Embedded, Error, cgroup, container, forwarder, remove};

/// How much longer than the stop grace period a shim may take.
const MARGIN: Duration = Duration::from_secs(5);

impl Embedded {
    /// Stops a container: SIGTERM, grace period, SIGKILL. Then removes its mounts, cgroups, links,
    /// processes and files. A missing container is not an error.
    pub async fn stop(&self, name: &str) -> Result<(), Error> {
        container::check_name(name)?;
        let _guard = self.lock_container(name).await;
        let removed = self.remove(name).await;
        self.network.lock().await.remove_unused_bridge().await;
        removed
    }

    /// Removes a container in any state, with its files.
    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        if let Some(removal) = self.detach(name).await? {
            remove::wait(removal).await;
        }
        Ok(())
    }

    /// Ends a container in any state and begins to remove its files; returns their removal.
    ///
    /// The files go last: without them, nobody would find processes that remain.
    pub(super) async fn detach(&self, name: &str) -> Result<Option<JoinHandle<()>>, Error> {
        let bundle = self.bundle(name);
        let remains = || Error::NotRemoved(name.to_owned());
        if bundle.path().exists() {
            // First, so that no connection reaches a container that is being removed.
            let is_closed = forwarder::kill(&bundle).await;
            self.stop_shim(&bundle).await;
            if !is_closed {
                tracing::error!(container = name, "killing the port forwarder failed");
                return Err(remains());
            }
        }
        let plan: Option<Plan> = read_json(&bundle.plan());
        let group = self.cgroup(name);
        let parent = format!("/paddock-{}", self.options.instance);
        let ended = tokio::task::spawn_blocking(move || {
            // If the shim was killed, the container's processes remain in the cgroup.
            let ended = cgroup::remove(&group);
            cgroup::remove_if_empty(&parent);
            ended
        });
        if !ended.await.unwrap_or(false) {
            tracing::error!(container = name, "killing the container's processes failed");
            return Err(remains());
        }
        let removal = match remove::discard(&self.dirs, bundle.path()) {
            Ok(files) => Some(self.purge(vec![files])),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::error!(container = name, %error, "removing files of a container failed");
                return Err(remains());
            }
        };
        if let Some(plan) = plan {
            self.network.lock().await.release(&plan.link).await;
        }
        Ok(removal)
    }

    /// Stops a shim and its container; kills the shim after a timeout.
    async fn stop_shim(&self, bundle: &Bundle) {
        let until = base::monotonic() + self.options.stop_grace + MARGIN;
        while is_alive(bundle) && base::monotonic() < until {
            // A shim that has just started has not written its pid yet.
            let state: Option<State> = read_json(&bundle.state());
            let Some((pidfd, shim)) =
                state.and_then(|state| Some((pidfd(state.shim)?, state.shim)))
            else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let _ = pidfd_send_signal(&pidfd, Signal::TERM);
            let left = until.saturating_duration_since(base::monotonic());
            let _ = tokio::time::timeout(left, process_ended(shim)).await;
        }
        if let Some(state) = read_json::<State>(&bundle.state())
            && is_alive(bundle)
            && let Some(shim) = pidfd(state.shim)
        {
            let _ = pidfd_send_signal(&shim, Signal::KILL);
            process_ended(state.shim).await;
        }
    }
}
