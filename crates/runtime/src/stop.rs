//! Stopping a container, and removing all that is left of it.

use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};

use super::dirs::read_json;
use super::plan::{Place, Plan, State};
use super::running::{gone, handle, is_alive};
use super::{Embedded, Error, cgroup, container, porter};

/// How much longer than the container's grace a shim may take.
const MARGIN: Duration = Duration::from_secs(5);

impl Embedded {
    /// Stops a container: SIGTERM, grace, SIGKILL. Then nothing is left of it, be it mounts, groups,
    /// links, processes or files. None there is fine.
    pub async fn stop(&self, name: &str) -> Result<(), Error> {
        container::check_name(name)?;
        let _alone = self.alone(name).await;
        self.remove(name).await;
        self.network.lock().await.tidy().await;
        let place = self.place(name);
        if place.path().exists() || cgroup::exists(&self.cgroup(name)) {
            return Err(Error::NotRemoved(name.to_owned()));
        }
        Ok(())
    }

    /// Removes a container, whatever state it is in.
    pub(super) async fn remove(&self, name: &str) {
        let place = self.place(name);
        if !place.path().exists() {
            return;
        }
        // First, so that nobody is led to a container that is going.
        let is_closed = porter::end(&place).await;
        self.end_shim(&place).await;
        if !is_closed {
            // Its files are what it can be found by the next time.
            tracing::error!(container = name, "the porter of a container does not go away");
            return;
        }
        let plan: Option<Plan> = read_json(&place.plan());
        let (group, path) = (self.cgroup(name), place.path().to_owned());
        let parent = format!("/paddock-{}", self.options.instance);
        let removed = tokio::task::spawn_blocking(move || {
            // Should the shim have been killed, the container is ended by its group.
            cgroup::remove(&group);
            cgroup::remove_if_empty(&parent);
            std::fs::remove_dir_all(&path)
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(container = name, %error, "files of a container could not be removed");
        }
        if let Some(link) = plan.and_then(|plan| plan.link) {
            self.network.lock().await.give_back(&link).await;
        }
    }

    /// Has a shim end its container and itself; ends it by force when it takes too long.
    async fn end_shim(&self, place: &Place) {
        let until = base::monotonic() + self.options.stop_grace + MARGIN;
        while is_alive(place) && base::monotonic() < until {
            // A shim that has just started has not said yet who it is.
            let state: Option<State> = read_json(&place.state());
            let Some((state, shim)) =
                state.and_then(|state| Some((handle(state.shim)?, state.shim)))
            else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let _ = pidfd_send_signal(&state, Signal::TERM);
            let left = until.saturating_duration_since(base::monotonic());
            let _ = tokio::time::timeout(left, gone(shim)).await;
        }
        if let Some(state) = read_json::<State>(&place.state())
            && is_alive(place)
            && let Some(shim) = handle(state.shim)
        {
            let _ = pidfd_send_signal(&shim, Signal::KILL);
            gone(state.shim).await;
        }
    }
}
