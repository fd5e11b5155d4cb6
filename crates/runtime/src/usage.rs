//! What operations in progress use, so that garbage collection neither waits for them nor removes it.
//!
//! A fetcher locks each layer that it finds or creates (`flock`, shared) until it has stored the
//! image. The server then registers the layers here, until the container's plan mentions them.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use base::locks::lock;
use rustix::fs::{FlockOperation, flock};

use crate::Container;
use crate::dirs::key;
use crate::image::Image;

/// Images that pulls and starts in progress use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    /// Keys of images that are being pulled.
    pulls: HashMap<u64, String>,
    /// Containers that are being started, and the chain ids of their layers.
    starts: HashMap<u64, (Container, Vec<String>)>,
}

/// A registration, until it is dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    usage: Usage,
    number: u64,
}

impl Usage {
    fn register(&self, put: impl FnOnce(&mut Inner, u64)) -> InUse {
        let mut inner = lock(&self.0);
        inner.next += 1;
        let number = inner.next;
        put(&mut inner, number);
        InUse { usage: self.clone(), number }
    }

    /// Registers a pull.
    pub(crate) fn pull(&self, image: &str) -> InUse {
        let key = key(image);
        self.register(|inner, number| drop(inner.pulls.insert(number, key)))
    }

    /// Registers the layers of a container that is being started.
    pub(crate) fn start(&self, container: &Container, image: &Image) -> InUse {
        let used = (container.clone(), image.layers.clone());
        self.register(|inner, number| drop(inner.starts.insert(number, used)))
    }

    /// Whether the directory of a pull belongs to one in progress.
    pub(crate) fn is_pulling(&self, key: &str) -> bool {
        lock(&self.0).pulls.values().any(|pulling| pulling == key)
    }

    /// Containers that are being started.
    pub(crate) fn containers(&self) -> Vec<Container> {
        lock(&self.0).starts.values().map(|(container, _)| container.clone()).collect()
    }

    /// Layers of containers that are being started.
    pub(crate) fn layers(&self) -> Vec<String> {
        lock(&self.0).starts.values().flat_map(|(_, layers)| layers.clone()).collect()
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut inner = lock(&self.usage.0);
        inner.pulls.remove(&self.number);
        inner.starts.remove(&self.number);
    }
}

/// Locks a layer against removal as long as the file is open. None if it does not exist.
pub(crate) fn lock_layer(layer: &Path) -> io::Result<Option<File>> {
    let file = match File::open(layer) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    flock(&file, FlockOperation::LockShared)?;
    // Garbage collection may have been faster.
    let found = std::fs::metadata(layer).ok().map(|found| found.ino());
    Ok((found == Some(file.metadata()?.ino())).then_some(file))
}

/// Locks a layer for its removal as long as the file is open. None if a fetcher uses it.
pub(crate) fn lock_unused(layer: &Path) -> Option<File> {
    let file = File::open(layer).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}
