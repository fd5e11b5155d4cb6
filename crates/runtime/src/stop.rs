//! Stops and removes containers.

use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};

use super::dirs::read_json;
use super::plan::{Bundle, Plan, State};
use super::running::{is_alive, pidfd, process_ended};
use super::{Embedded, Error, cgroup, container, forwarder};

/// How much longer than the stop grace period a shim may take.
const MARGIN: Duration = Duration::from_secs(5);

impl Embedded {
    /// Stops a container: SIGTERM, grace period, SIGKILL. Then removes its mounts, cgroups, links,
    /// processes and files. A missing container is not an error.
    pub async fn stop(&self, name: &str) -> Result<(), Error> {
        container::check_name(name)?;
        let _guard = self.lock_container(name).await;
        self.remove(name).await;
        self.network.lock().await.remove_unused_bridge().await;
        let bundle = self.bundle(name);
        if bundle.path().exists() || cgroup::exists(&self.cgroup(name)) {
            return Err(Error::NotRemoved(name.to_owned()));
        }
        Ok(())
    }

    /// Removes a container in any state.
    pub(super) async fn remove(&self, name: &str) {
        let bundle = self.bundle(name);
        if !bundle.path().exists() {
            return;
        }
        // First, so that no connection reaches a container that is being removed.
        let is_closed = forwarder::kill(&bundle).await;
        self.stop_shim(&bundle).await;
        if !is_closed {
            // The next attempt finds the forwarder through the files.
            tracing::error!(container = name, "killing the port forwarder failed");
            return;
        }
        let plan: Option<Plan> = read_json(&bundle.plan());
        let (group, path) = (self.cgroup(name), bundle.path().to_owned());
        let parent = format!("/paddock-{}", self.options.instance);
        let removed = tokio::task::spawn_blocking(move || {
            // If the shim was killed, the container's processes remain in the cgroup.
            cgroup::remove(&group);
            cgroup::remove_if_empty(&parent);
            std::fs::remove_dir_all(&path)
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(container = name, %error, "removing files of a container failed");
        }
        if let Some(plan) = plan {
            self.network.lock().await.release(&plan.link).await;
        }
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
