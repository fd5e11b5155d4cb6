//! An image store in memory, on a simulated runtime.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use agent::{ImageResult, Images, ObservedFuture, Runtime, Simulated};
use base::locks::lock;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use model::OrganizationId;
use model::agent::{Observed, ReplicaId};
use model::deployment::Spec;
use model::image::{StoreError, StoredImage};
use model::log::{LogLine, LogsFrom};

/// An image store. Each archive is one image, `localhost/NAME:1`.
#[derive(Default)]
pub struct FakeImages {
    /// Sizes by owner and name.
    sizes: Mutex<BTreeMap<(OrganizationId, String), u64>>,
    /// By how much an image is larger than its archive, in bytes.
    growth: AtomicU64,
}

impl FakeImages {
    /// Images are larger than their archives from now on.
    pub fn grow_by(&self, bytes: u64) {
        self.growth.store(bytes, Ordering::Relaxed);
    }

    /// Size of all images, of all organizations.
    pub fn total(&self) -> u64 {
        lock(&self.sizes).values().sum()
    }

    fn of(&self, organization: OrganizationId) -> Vec<StoredImage> {
        let sizes = lock(&self.sizes);
        let own = sizes.iter().filter(|((owner, _), _)| *owner == organization);
        own.map(|((_, name), size)| stored(name, *size)).collect()
    }
}

fn stored(name: &str, size_bytes: u64) -> StoredImage {
    let digest = format!("sha256:{:064x}", name.len());
    StoredImage { name: name.to_owned(), digest, size_bytes, is_builtin: false }
}

impl Images for FakeImages {
    fn load<'a>(
        &'a self,
        organization: OrganizationId,
        archive: File,
        name: Option<&'a str>,
    ) -> ImageResult<'a, Vec<StoredImage>> {
        Box::pin(async move {
            let length = archive.metadata().map_or(0, |data| data.len());
            // Others run meanwhile.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            let name = format!("localhost/{}:1", name.unwrap_or("image"));
            let size = length + self.growth.load(Ordering::Relaxed);
            lock(&self.sizes).insert((organization, name.clone()), size);
            Ok(vec![stored(&name, size)])
        })
    }

    fn list(&self, organization: OrganizationId) -> ImageResult<'_, Vec<StoredImage>> {
        Box::pin(async move { Ok(self.of(organization)) })
    }

    fn delete<'a>(&'a self, organization: OrganizationId, name: &'a str) -> ImageResult<'a, ()> {
        Box::pin(async move {
            match lock(&self.sizes).remove(&(organization, name.to_owned())) {
                Some(_) => Ok(()),
                None => Err(StoreError::NotFound(format!("Image {name} not found."))),
            }
        })
    }
}

/// A simulated runtime with an image store.
pub(crate) struct WithImages {
    pub(crate) runtime: Simulated,
    pub(crate) images: Arc<FakeImages>,
}

impl Runtime for WithImages {
    fn name(&self) -> &'static str {
        self.runtime.name()
    }

    fn start<'a>(
        &'a self,
        id: ReplicaId,
        node: &'a str,
        organization: Option<OrganizationId>,
        spec: &'a Spec,
    ) -> ObservedFuture<'a> {
        self.runtime.start(id, node, organization, spec)
    }

    fn changed<'a>(&'a self, id: ReplicaId, last: &'a Observed) -> ObservedFuture<'a> {
        self.runtime.changed(id, last)
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), agent::Error>> {
        self.runtime.stop(id)
    }

    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> BoxStream<'static, LogLine> {
        self.runtime.logs(id, from, follow)
    }

    fn is_real(&self) -> bool {
        self.runtime.is_real()
    }

    fn images(&self) -> Option<&dyn Images> {
        Some(&*self.images)
    }
}
