//! Starts containers and adopts running ones.

use std::process::Stdio;
use std::time::Duration;

use super::child::{NotReady, Task, spawn_until_ready};
use super::dirs::{read_json, write_json};
use super::image::fetch::fetch;
use super::image::{Image, is_local};
use super::plan::{Bundle, Link, Phase, Plan, State, boot_id};
use super::running::is_alive;
use super::shim::Disk;
use super::usage::InUse;
use super::userns::UserNs;
use super::{Container, Embedded, Error, named_lock};

/// How long a pulled image counts as current.
const IMAGE_TTL: Duration = Duration::from_secs(10);
/// Number of attempts to use an image that disappears meanwhile.
const IMAGE_ATTEMPTS: usize = 3;
/// Timeout of a shim's start.
const START_TIMEOUT: Duration = Duration::from_mins(1);

impl Embedded {
    /// Starts a container and returns its endpoints. An existing container with the same
    /// specification is adopted.
    pub async fn start(&self, container: &Container) -> Result<Vec<String>, Error> {
        container.check()?;
        let _guard = self.lock_container(&container.name).await;
        let bundle = self.bundle(&container.name);
        if let Some(plan) = find_existing(&bundle, container) {
            return self.publish(&bundle, plan).await;
        }
        self.remove(&container.name).await?;
        let (image, _in_use) = self.used_image(container).await?;
        let started = self.launch(&bundle, container, image).await;
        if started.is_err() {
            if let Err(error) = self.remove(&container.name).await {
                tracing::error!(container = container.name, %error, "removing a container that did not start failed");
            }
            self.network.lock().await.remove_unused_bridge().await;
        }
        started
    }

    /// The image of a container, with its layers registered as used.
    async fn used_image(&self, container: &Container) -> Result<(Image, InUse), Error> {
        // Under the lock: a garbage collection in progress does not know of it, later ones retain the
        // image's metadata, and thereby its layers, from before its pull until they are registered.
        let _lease = {
            let _layers = self.layers.read().await;
            self.usage.pull(&container.image)
        };
        for _ in 0..IMAGE_ATTEMPTS {
            let image = if is_local(&container.image) {
                self.local_image(container).await?
            } else {
                self.image(container).await?
            };
            let _layers = self.layers.read().await;
            let in_use = self.usage.start(container, &image);
            // Another program may have removed it.
            if self.is_stored(&image) {
                return Ok((image, in_use));
            }
        }
        Err(Error::Helper(format!("Image {} was removed during the start.", container.image)))
    }

    /// Returns the image, pulled unless it is current.
    async fn image(&self, container: &Container) -> Result<Image, Error> {
        let (name, owner) = (container.image.as_str(), container.owner.as_deref());
        // Images that were pulled with an owner's credentials are for that owner only.
        let key = match (&container.pull, owner) {
            (Some(_), Some(owner)) => format!("{owner}\n{name}"),
            _ => name.to_owned(),
        };
        // Before the image's lock: an owner without a free slot must not delay others.
        let _pull_slot = self.pulls.acquire(owner).await;
        let slot = named_lock(&self.images, &key);
        let mut slot = slot.lock().await;
        if let Some((at, image)) = &*slot
            && at.elapsed() < IMAGE_TTL
            // Without metadata, garbage collection would not retain its layers.
            && self.dirs.image(name).exists()
            && self.is_stored(image)
        {
            return Ok(image.clone());
        }
        let stored =
            read_json::<Image>(&self.dirs.image(&key)).filter(|image| self.is_stored(image));
        // A digest never changes its meaning.
        let image = match stored {
            Some(stored) if name.contains("@sha256:") => stored,
            stored => self.fetch(container, &key, stored).await?,
        };
        *slot = Some((base::monotonic(), image.clone()));
        Ok(image)
    }

    async fn fetch(
        &self,
        container: &Container,
        key: &str,
        stored: Option<Image>,
    ) -> Result<Image, Error> {
        let name = container.image.as_str();
        let _in_use = self.usage.pull(key);
        let is_transient = |error: &Error| {
            matches!(
                error,
                Error::RegistryUnavailable(_)
                    | Error::RegistryTimedOut(_)
                    | Error::NoSpace { .. }
                    | Error::Io { .. }
            )
        };
        match (fetch(&self.options, name, key, container.pull.as_ref()).await, stored) {
            (Err(error), Some(stored)) if is_transient(&error) => {
                tracing::warn!(image = name, %error, "image pull failed, using the stored image");
                Ok(stored)
            }
            (fetched, _) => fetched,
        }
    }

    async fn launch(
        &self,
        bundle: &Bundle,
        container: &Container,
        image: Image,
    ) -> Result<Vec<String>, Error> {
        let failed = |error| Error::io("Preparing the container failed", error);
        let user_ns = self.user_ns(container).await?;
        let link = self.network.lock().await.allocate().await?;
        let plan = Plan { user_ns, ..self.plan(container, image, link) };
        // No await until the plan is written: cleanup finds the link through the plan.
        std::fs::create_dir_all(bundle.path()).map_err(failed)?;
        write_json(&bundle.plan(), &plan).map_err(failed)?;
        self.start_shim(bundle).await?;
        self.publish(bundle, plan).await
    }

    fn plan(&self, container: &Container, image: Image, link: Link) -> Plan {
        let options = &self.options;
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Plan {
            image,
            layers: self.dirs.layers(),
            cgroup: self.cgroup(&container.name),
            link,
            published: Vec::new(),
            stop_grace_ms: ms(options.stop_grace),
            restart_first_ms: ms(options.restart_backoff),
            restart_most_ms: ms(options.max_restart_backoff),
            max_log_bytes: options.max_log_bytes,
            log_files: options.log_files.max(1),
            max_pids: options.max_pids,
            default_cpu_milli: options.default_cpu_milli,
            default_ram_bytes: options.default_ram_bytes,
            parent: Some(self.parent_limits),
            disk: Some(self.disk(container)),
            user_ns: None,
            boot: boot_id(),
            container: container.clone(),
        }
    }

    /// The user namespace of a container: with the id range of its owner.
    async fn user_ns(&self, container: &Container) -> Result<Option<UserNs>, Error> {
        let Some(layers) = self.layer_ids else { return Ok(None) };
        let owner = container.owner.as_deref().unwrap_or_default();
        let in_use = || {
            let is_removed = super::remove::trash(&self.dirs).is_empty();
            let plans = super::plans(&self.dirs).into_iter();
            is_removed.then(|| plans.filter_map(|plan| Some(plan.user_ns?.first_id)).collect())
        };
        let first_id = self.ids.lock().await.range(owner, in_use);
        let first_id = first_id
            .map_err(|error| Error::io("Allocating user ids of the owner failed", error))?;
        Ok(Some(UserNs { first_id, layers }))
    }

    /// The writable layer of a container.
    fn disk(&self, container: &Container) -> Disk {
        let kind = self.disk_kind;
        let default = self.options.disk_bytes;
        match container.disk_bytes().and_then(|bytes| u64::try_from(bytes).ok()) {
            Some(bytes) if bytes != default => Disk { kind, bytes, template: None },
            _ => {
                let template = self.dirs.disks().join(format!("{default}.img"));
                Disk { kind, bytes: default, template: Some(template) }
            }
        }
    }

    /// Starts a shim and waits until its container runs.
    async fn start_shim(&self, bundle: &Bundle) -> Result<(), Error> {
        let failed = |error| Error::io("Starting the shim failed", error);
        let stderr = std::fs::File::create(bundle.shim_stderr()).map_err(failed)?;
        let mut command = tokio::process::Command::new(&self.options.program);
        command
            .arg(Task::Shim.argument())
            .arg(bundle.path())
            .stdin(Stdio::null())
            .stderr(stderr)
            .current_dir("/");
        spawn_until_ready(command, START_TIMEOUT).await.map_err(|error| match error {
            NotReady::Reported(error) => error,
            NotReady::Io(error) => failed(error),
            NotReady::TimedOut => Error::Helper("Container did not start within a minute.".into()),
            NotReady::Exited => Error::Helper("Shim exited unexpectedly.".into()),
        })
    }
}

/// The plan of an existing container with this specification that runs or has completed.
fn find_existing(bundle: &Bundle, container: &Container) -> Option<Plan> {
    let plan: Plan = read_json(&bundle.plan())?;
    let state: State = read_json(&bundle.state())?;
    let is_same = plan.container.is_same(container) && plan.boot == boot_id();
    (is_same && (state.phase == Phase::Ended || is_alive(bundle))).then_some(plan)
}
