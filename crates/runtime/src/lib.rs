//! The embedded runtime: runs OCI images on this machine with nothing but this program and Linux.
//!
//! A library, usable without the rest of Paddock (`README.md`). It knows one machine and its containers,
//! and nothing of deployments, agents or control planes. "The server" is the process that uses it.
//!
//! The server's own process never forks, mounts or unpacks: a *fetcher* brings images, a *shim* per
//! container runs it, a *porter* holds its published ports, and both outlive the server. What there is
//! is told by files and by locks that a living shim or porter holds, so that a server that was killed
//! finds everything again.

mod cgroup;
mod child;
mod condition;
mod container;
mod credentials;
mod dirs;
mod error;
mod gc;
mod image;
mod logs;
pub mod message;
mod network;
mod options;
mod plan;
mod porter;
mod probe;
mod raw;
mod running;
mod shim;
mod start;
mod stop;
mod unpack;

use std::fs::File;

use base::Instant;
use base::locks::{Locks, lock, one_of};
use rustix::fs::{FlockOperation, flock};
use tokio::sync::{OwnedMutexGuard, RwLock, Semaphore};

use dirs::{Dirs, read_json};
use image::Image;
use plan::{Place, Plan};

pub use child::child_main;
pub use condition::Condition;
pub use container::{Container, check_ram};
pub use credentials::Credentials;
pub use error::Error;
pub use gc::Freed;
pub use image::{Reference, reference};
pub use logs::LogStream;
pub use options::{Network, Options};
pub use running::Listed;

/// How many images are fetched at once.
const MAX_FETCHES: usize = 16;

/// The runtime. Dropping it leaves containers running and their ports open.
pub struct Embedded {
    options: Options,
    dirs: Dirs,
    own_network: bool,
    network: tokio::sync::Mutex<network::Network>,
    /// Held while something is done with a container.
    names: Locks<()>,
    /// Held while an image is fetched: the one of a moment ago will do.
    images: Locks<Option<(Instant, Image)>>,
    fetches: Semaphore,
    /// Shared by those who are about to use layers, taken alone by who removes them.
    layers: RwLock<()>,
    /// Held as long as this lives: two of us in one directory would undo each other's work.
    _lock: File,
}

impl Embedded {
    /// Finds out whether it can work here, and takes up again what runs.
    ///
    /// The error says exactly why not and what to do.
    pub async fn probe(options: Options) -> Result<Embedded, Error> {
        container::check_name(&options.instance)?;
        let dirs = Dirs(options.dir.clone());
        let lock = open(&dirs)?;
        let abilities = probe::probe(&options).await?;
        cgroup::check(&options.instance)?;
        let own_network = match (options.network, abilities.own_network) {
            (Network::Host, _) => false,
            (Network::Auto, false) => {
                tracing::warn!("containers share the machine's network: it allows no other");
                false
            }
            (Network::Own, false) => {
                let why = "This process may not make network namespaces: it lacks \
                           CAP_SYS_ADMIN; inside a container, start it privileged.";
                return Err(Error::NotPermitted(why.to_owned()));
            }
            (_, true) => true,
        };
        let plans = plans(&dirs);
        let links: Vec<_> = plans.iter().filter_map(|plan| plan.link.clone()).collect();
        let network =
            network::Network::open(&options.dir, &options.instance, options.egress, &links);
        let embedded = Embedded {
            dirs,
            own_network,
            network: tokio::sync::Mutex::new(network),
            names: Locks::default(),
            images: Locks::default(),
            fetches: Semaphore::new(MAX_FETCHES),
            layers: RwLock::default(),
            _lock: lock,
            options,
        };
        embedded.resume(&plans).await;
        Ok(embedded)
    }

    /// Makes sure that what runs can be reached, and throws away what was left half done.
    async fn resume(&self, plans: &[Plan]) {
        let _ = std::fs::remove_dir_all(self.dirs.temporary());
        let _ = self.dirs.create();
        for name in names(&self.dirs) {
            if !plans.iter().any(|plan| plan.container.name == name) {
                self.remove(&name).await;
            }
        }
        if plans.iter().any(|plan| plan.link.is_some())
            && let Err(error) = self.network.lock().await.ensure().await
        {
            tracing::error!(%error, "containers of before can't be reached");
        }
        for plan in plans {
            let place = self.place(&plan.container.name);
            if running::is_alive(&place)
                && let Err(error) = self.publish(&place, plan.clone()).await
            {
                tracing::error!(container = plan.container.name, %error, "it can't be reached");
            }
        }
    }

    /// Makes sure that a living container's ports lead to it, the same as before if they are free;
    /// all its endpoints.
    async fn publish(&self, place: &Place, mut plan: Plan) -> Result<Vec<String>, Error> {
        if let Some(link) = &plan.link
            && !plan.container.ports.is_empty()
            && running::is_alive(place)
        {
            let ports = self.porter(place, &plan, link).await?;
            if ports != plan.published {
                if !plan.published.is_empty() {
                    let (container, before) = (&plan.container.name, &plan.published);
                    tracing::warn!(container, ?before, ?ports, "its ports are others than before");
                }
                plan.published = ports;
                dirs::write_json(&place.plan(), &plan).map_err(porter::unopened)?;
            }
        }
        Ok(endpoints(&plan))
    }

    fn place(&self, name: &str) -> Place {
        Place(self.dirs.container(name))
    }

    fn cgroup(&self, name: &str) -> String {
        format!("/paddock-{}/{name}", self.options.instance)
    }

    /// Waits until nobody else does something with this container.
    async fn alone(&self, name: &str) -> OwnedMutexGuard<()> {
        one_of(&self.names, name).lock_owned().await
    }
}

/// Makes the directory ours.
fn open(dirs: &Dirs) -> Result<File, Error> {
    let dir = &dirs.0;
    let failed =
        |error| Error::io(format!("{} can't be used by the runtime", dir.display()), error);
    dirs.create().map_err(failed)?;
    let file = File::create(dirs.lock()).map_err(failed)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Error::DirectoryInUse { dir: dir.clone() })?;
    Ok(file)
}

/// The names of the containers that exist in some way.
fn names(dirs: &Dirs) -> Vec<String> {
    std::fs::read_dir(dirs.containers())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// The plans of the containers that exist.
fn plans(dirs: &Dirs) -> Vec<Plan> {
    let plan = |name: &String| read_json(&Place(dirs.container(name)).plan());
    names(dirs).iter().filter_map(plan).collect()
}

/// Where a container's ports can be reached.
fn endpoints(plan: &Plan) -> Vec<String> {
    let ports = if plan.link.is_some() { &plan.published } else { &plan.container.ports };
    ports.iter().map(|port| format!("127.0.0.1:{port}")).collect()
}
