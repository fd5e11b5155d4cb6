//! Embedded container runtime: runs OCI images on Linux without a daemon or other programs.
//!
//! A library, usable without the rest of Paddock (`README.md`). It manages the containers of one
//! machine and has no notion of deployments, agents or control planes. "The server" is the process
//! that uses it.
//!
//! The server's process never forks, mounts or unpacks. A *fetcher* process pulls or loads images, a *shim*
//! per container runs it, and a *forwarder* per container publishes its ports; shims and forwarders
//! outlive the server. State is in files, liveness in locks that a shim or forwarder holds, so that
//! a restarted server adopts every container.

mod builtin;
mod cgroup;
mod child;
mod condition;
mod confine;
mod container;
mod credentials;
mod dirs;
mod error;
mod forwarder;
#[doc(hidden)]
pub mod fuzzing;
mod gc;
mod ids;
mod image;
mod logs;
pub mod message;
mod network;
mod options;
mod plan;
mod probe;
mod pulls;
mod raw;
mod remove;
mod running;
mod shim;
mod start;
mod stop;
mod unpack;
mod usage;
mod userns;

use std::fs::File;
use std::io;

use base::Instant;
use base::locks::{Locks, named_lock};
use tokio::sync::{OwnedMutexGuard, RwLock};

use dirs::{Dirs, read_json};
use image::Image;
use plan::{Bundle, Plan};

pub use builtin::{BUILTIN_IMAGE, builtin_archive, builtin_image};
pub use child::child_main;
pub use condition::Condition;
pub use container::{Container, check_ram};
pub use credentials::{Credentials, Registries, RegistryHost, RepositoryPattern};
pub use dirs::disk_size;
pub use error::Error;
pub use gc::Freed;
pub use image::repack::{Repack, repack};
pub use image::{Reference, is_local, local_name, reference};
pub use logs::LogStream;
pub use network::cidr::Cidr;
pub use options::{Firewall, Options, Userns};
pub use running::ContainerStatus;

/// The container runtime. Dropping it leaves containers running and their ports published.
pub struct Embedded {
    options: Options,
    dirs: Dirs,
    /// Limits of all containers together.
    parent_limits: cgroup::parent::ParentLimits,
    /// How writable layers are limited.
    disk_kind: shim::DiskKind,
    /// How containers see layers in their user namespace; none: they have no user namespace.
    layer_ids: Option<userns::LayerIds>,
    /// Why containers have no user namespace.
    userns_warning: Option<String>,
    /// Id ranges of owners.
    ids: tokio::sync::Mutex<ids::Ids>,
    network: tokio::sync::Mutex<network::Network>,
    /// One lock per container, held during an operation on it.
    container_locks: Locks<()>,
    /// One lock per image, held during its pull; caches a recent result.
    images: Locks<Option<(Instant, Image)>>,
    pulls: pulls::PullSlots,
    /// Images that operations in progress use.
    usage: usage::Usage,
    /// Held for moments only: by starts while they register layers, and by garbage collection.
    layers: RwLock<()>,
    /// Exclusive lock on the directory: a second process would undo this one's work.
    _lock: File,
}

impl Embedded {
    /// Checks that the host supports containers, then adopts the running ones.
    ///
    /// The error says what is missing and how to provide it.
    pub async fn probe(options: Options) -> Result<Embedded, Error> {
        container::check_name(&options.instance)?;
        let dirs = Dirs(options.dir.clone());
        let lock = lock_directory(&dirs).await?;
        let capabilities = probe::probe(&options).await?;
        cgroup::check(&options.instance)?;
        let firewall = capabilities.firewalls.choose(options.firewall);
        let firewall = firewall.map_err(Error::NotIsolated)?;
        if capabilities.disk == shim::DiskKind::Tmpfs {
            tracing::warn!(
                "writable layers are in memory: loop devices or mkfs.ext4 (e2fsprogs) are missing"
            );
        }
        let (layer_ids, userns_warning) = choose_userns(&options, capabilities.user_ns);
        let plans = plans(&dirs);
        let ranges = plans.iter().filter_map(|plan| {
            Some((plan.container.owner.clone().unwrap_or_default(), plan.user_ns?.first_id))
        });
        let ids = ids::Ids::open(dirs.ids(), ranges);
        let links = plans.iter().map(|plan| &plan.link);
        let network = network::Network::open(&options, firewall, links);
        let embedded = Embedded {
            dirs,
            parent_limits: cgroup::parent::ParentLimits::new(&options),
            disk_kind: capabilities.disk,
            layer_ids,
            userns_warning,
            ids: tokio::sync::Mutex::new(ids),
            network: tokio::sync::Mutex::new(network),
            container_locks: Locks::default(),
            images: Locks::default(),
            pulls: pulls::PullSlots::default(),
            usage: usage::Usage::default(),
            layers: RwLock::default(),
            _lock: lock,
            options,
        };
        embedded.resume(&plans).await;
        Ok(embedded)
    }

    /// Why containers are less isolated than they could be, for the administrator.
    pub fn warning(&self) -> Option<&str> {
        self.userns_warning.as_deref()
    }

    /// Republishes the ports of running containers and removes leftovers of interrupted operations.
    async fn resume(&self, plans: &[Plan]) {
        // Renamed only: trees that containers and layers have created must not delay the start.
        if let Err(error) = remove::discard(&self.dirs, &self.dirs.temporary()) {
            tracing::error!(%error, "removing temporary files failed");
        }
        if let Err(error) = self.dirs.create() {
            tracing::error!(%error, "creating the directory of temporary files failed");
        }
        for name in container_names(&self.dirs) {
            if !plans.iter().any(|plan| plan.container.name == name)
                && let Err(error) = self.detach(&name).await
            {
                tracing::error!(container = name, %error, "removing an incomplete container failed");
            }
        }
        drop(self.purge(remove::trash(&self.dirs)));
        // Containers of an older version, or of other settings.
        let parent = format!("/paddock-{}", self.options.instance);
        if cgroup::exists(&parent)
            && let Err(error) = self.parent_limits.apply(&parent)
        {
            tracing::error!(%error, "limiting all containers together failed");
        }
        if !plans.is_empty()
            && let Err(error) = self.network.lock().await.ensure_bridge().await
        {
            tracing::error!(%error, "restoring the bridge failed, containers are unreachable");
        }
        for plan in plans {
            let bundle = self.bundle(&plan.container.name);
            if running::is_alive(&bundle)
                && let Err(error) = self.publish(&bundle, plan.clone()).await
            {
                tracing::error!(container = plan.container.name, %error, "publishing ports failed");
            }
        }
    }

    /// Publishes the ports of a running container, the same as before if they are free. Returns all
    /// endpoints.
    async fn publish(&self, bundle: &Bundle, mut plan: Plan) -> Result<Vec<String>, Error> {
        if !plan.container.ports.is_empty() && running::is_alive(bundle) {
            let ports = self.ensure_forwarder(bundle, &plan, &plan.link).await?;
            if ports != plan.published {
                if !plan.published.is_empty() {
                    let (container, old) = (&plan.container.name, &plan.published);
                    tracing::warn!(container, ?old, new = ?ports, "published ports changed");
                }
                plan.published = ports;
                dirs::write_json(&bundle.plan(), &plan).map_err(forwarder::not_opened)?;
            }
        }
        Ok(endpoints(&plan))
    }

    fn bundle(&self, name: &str) -> Bundle {
        Bundle(self.dirs.container(name))
    }

    fn cgroup(&self, name: &str) -> String {
        format!("/paddock-{}/{name}", self.options.instance)
    }

    /// Acquires the lock of a container.
    async fn lock_container(&self, name: &str) -> OwnedMutexGuard<()> {
        named_lock(&self.container_locks, name).lock_owned().await
    }
}

/// How containers run in user namespaces, or why they don't.
fn choose_userns(
    options: &Options,
    found: Result<userns::LayerIds, String>,
) -> (Option<userns::LayerIds>, Option<String>) {
    let why = match found {
        _ if options.userns == Userns::Off => "turned off".to_owned(),
        Err(why) => why,
        Ok(layers) => {
            let layers_by = match layers {
                userns::LayerIds::Idmapped => "idmapped mounts",
                userns::LayerIds::Chowned => "chown at each start",
            };
            tracing::info!(layers_by, "containers run in user namespaces");
            return (Some(layers), None);
        }
    };
    tracing::warn!(
        why,
        "CONTAINERS RUN WITHOUT USER NAMESPACES: root of a container is root of this machine"
    );
    let warning = format!(
        "containers run without user namespaces, their root is root of this machine: {why}"
    );
    (None, Some(warning))
}

/// Creates the directory and acquires its exclusive lock.
async fn lock_directory(dirs: &Dirs) -> Result<File, Error> {
    let dir = &dirs.0;
    let failed = |error| Error::io(format!("Cannot use directory {}", dir.display()), error);
    dirs.create().map_err(failed)?;
    let file = dirs.lock();
    let lock = tokio::task::spawn_blocking(move || base::file_lock::acquire(&file)).await;
    let lock = lock.map_err(io::Error::other).and_then(|lock| lock).map_err(failed)?;
    lock.ok_or_else(|| Error::DirectoryInUse { dir: dir.clone() })
}

/// Names of all containers, including incomplete ones.
fn container_names(dirs: &Dirs) -> Vec<String> {
    std::fs::read_dir(dirs.containers())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Plans of all containers.
fn plans(dirs: &Dirs) -> Vec<Plan> {
    let plan = |name: &String| read_json(&Bundle(dirs.container(name)).plan());
    container_names(dirs).iter().filter_map(plan).collect()
}

/// Host addresses of a container's published ports.
fn endpoints(plan: &Plan) -> Vec<String> {
    plan.published.iter().map(|port| format!("127.0.0.1:{port}")).collect()
}
