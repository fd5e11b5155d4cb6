//! Starting a container, or finding that it runs.

use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpListener;

use super::child::{NoWord, Task, first_word};
use super::dirs::{read_json, write_json};
use super::image::Image;
use super::image::fetch::fetch;
use super::plan::{Phase, Place, Plan, State, boot_id};
use super::running::is_alive;
use super::{Container, Embedded, Error, one_of};

/// An image that was asked for so short a time ago is still the same.
const FRESH: Duration = Duration::from_secs(10);
/// How long a shim may take to start its container.
const START: Duration = Duration::from_mins(1);

impl Embedded {
    /// Starts a container; where each of its ports can be reached. A container that is there already
    /// with the same content is taken as it is.
    pub async fn start(&self, container: &Container) -> Result<Vec<String>, Error> {
        container.check()?;
        let _alone = self.alone(&container.name).await;
        let place = self.place(&container.name);
        if let Some(plan) = find(&place, container) {
            return self.publish(&place, plan).await;
        }
        self.remove(&container.name).await;
        let _layers = self.layers.read().await;
        let image = self.image(&container.image).await?;
        let started = self.launch(&place, container, image).await;
        if started.is_err() {
            self.remove(&container.name).await;
            self.network.lock().await.tidy().await;
        }
        started
    }

    /// The image, fetched unless it is known to be here.
    async fn image(&self, name: &str) -> Result<Image, Error> {
        let slot = one_of(&self.images, name);
        let mut slot = slot.lock().await;
        let is_here = |image: &Image| image.layers.iter().all(|id| self.dirs.layer(id).exists());
        if let Some((at, image)) = &*slot
            && at.elapsed() < FRESH
            && is_here(image)
        {
            return Ok(image.clone());
        }
        let stored = read_json::<Image>(&self.dirs.image(name)).filter(is_here);
        // A digest can't mean anything else than it did.
        let image = match stored {
            Some(stored) if name.contains("@sha256:") => stored,
            stored => self.fetch(name, stored).await?,
        };
        *slot = Some((base::monotonic(), image.clone()));
        Ok(image)
    }

    async fn fetch(&self, name: &str, stored: Option<Image>) -> Result<Image, Error> {
        let _turn = self.fetches.acquire().await.expect("it is never closed");
        let says_nothing_of_the_image = |error: &Error| {
            matches!(
                error,
                Error::RegistryUnavailable(_)
                    | Error::RegistryTimedOut(_)
                    | Error::NoSpace { .. }
                    | Error::Io { .. }
            )
        };
        match (fetch(&self.options, name).await, stored) {
            (Err(error), Some(stored)) if says_nothing_of_the_image(&error) => {
                tracing::warn!(image = name, %error, "using the stored image");
                Ok(stored)
            }
            (fetched, _) => fetched,
        }
    }

    async fn launch(
        &self,
        place: &Place,
        container: &Container,
        image: Image,
    ) -> Result<Vec<String>, Error> {
        let failed = |error| Error::io("The container could not be prepared", error);
        let mut plan = self.plan(container, image);
        if self.own_network {
            plan.link = Some(self.network.lock().await.take().await?);
        } else {
            check_ports(&container.ports).await?;
        }
        // From here to the plan on disk nothing waits: what was taken is known to who cleans up.
        std::fs::create_dir_all(place.path()).map_err(failed)?;
        write_json(&place.plan(), &plan).map_err(failed)?;
        self.shim(place).await?;
        self.publish(place, plan).await
    }

    fn plan(&self, container: &Container, image: Image) -> Plan {
        let options = &self.options;
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Plan {
            image,
            layers: self.dirs.layers(),
            cgroup: self.cgroup(&container.name),
            link: None,
            published: Vec::new(),
            stop_grace_ms: ms(options.stop_grace),
            restart_first_ms: ms(options.restart_first),
            restart_most_ms: ms(options.restart_most),
            max_log_bytes: options.max_log_bytes,
            log_files: options.log_files.max(1),
            max_pids: options.max_pids,
            boot: boot_id(),
            container: container.clone(),
        }
    }

    /// Starts a shim and waits until it says that its container runs.
    async fn shim(&self, place: &Place) -> Result<(), Error> {
        let failed = |error| Error::io("The container's shim can't start", error);
        let complaints = std::fs::File::create(place.complaints()).map_err(failed)?;
        let mut command = tokio::process::Command::new(&self.options.program);
        command
            .arg(Task::Shim.argument())
            .arg(place.path())
            .stdin(Stdio::null())
            .stderr(complaints)
            .current_dir("/");
        first_word(command, START).await.map_err(|silence| match silence {
            NoWord::Refused(error) => error,
            NoWord::Failed(error) => failed(error),
            NoWord::Late => Error::Helper("The container did not start within a minute.".into()),
            NoWord::Ended => Error::Helper("The container's shim ended unexpectedly.".into()),
        })
    }
}

/// The plan of a container that is there as it shall be: it runs, or has run to its end.
fn find(place: &Place, container: &Container) -> Option<Plan> {
    let plan: Plan = read_json(&place.plan())?;
    let state: State = read_json(&place.state())?;
    let is_same = plan.container == *container && plan.boot == boot_id();
    (is_same && (state.phase == Phase::Ended || is_alive(place))).then_some(plan)
}

/// On the machine's own network two can't listen on the same port.
async fn check_ports(ports: &[u16]) -> Result<(), Error> {
    for port in ports {
        TcpListener::bind(("0.0.0.0", *port))
            .await
            .map_err(|error| Error::PortInUse { port: *port, cause: error.to_string() })?;
    }
    Ok(())
}
