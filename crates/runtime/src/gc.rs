//! Garbage collection of unused images and layers.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::dirs::{Dirs, read_json};
use super::image::Image;
use super::image::store::loaded_images;
use super::usage::{Usage, lock_unused};
use super::{Embedded, plans, remove};

/// Number of layers that are locked at once: each takes a descriptor.
const MAX_LOCKS: usize = 64;

/// What garbage collection removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freed {
    /// Number of images.
    pub images: usize,
    /// Number of unpacked layers.
    pub layers: usize,
}

impl Embedded {
    /// Removes unused images that were last pulled longer than `unused_for` ago, their layers, and
    /// interrupted pulls. Retains loaded images: nothing could pull them again. Neither waits for
    /// starts and loads in progress nor delays them: files are renamed first and removed afterwards.
    pub async fn gc(&self, unused_for: Duration) -> Freed {
        let guard = self.layers.write().await;
        let (dirs, usage) = (self.dirs.clone(), self.usage.clone());
        let collected = tokio::task::spawn_blocking(move || collect(&dirs, &usage, unused_for));
        let freed = collected.await.unwrap_or_default();
        drop(guard);
        // Includes trees whose removal failed before.
        remove::wait(self.purge(remove::trash(&self.dirs))).await;
        freed
    }

    /// Collects garbage periodically; never returns.
    pub async fn gc_forever(&self, every: Duration, unused_for: Duration) {
        loop {
            tokio::time::sleep(every).await;
            let Freed { images, layers } = self.gc(unused_for).await;
            if images + layers > 0 {
                tracing::info!(images, layers, "unused images removed");
            }
        }
    }
}

fn collect(dirs: &Dirs, usage: &Usage, unused_for: Duration) -> Freed {
    let mut freed = Freed { images: remove_images(dirs, usage, unused_for), layers: 0 };
    let used = used_layers(dirs, usage);
    let unused =
        entries(&dirs.layers()).into_iter().filter(|layer| !used.contains(file_name(layer)));
    for layers in unused.collect::<Vec<_>>().chunks(MAX_LOCKS) {
        let layers = layers.iter();
        let locked: Vec<_> =
            layers.filter_map(|layer| Some((layer, lock_unused(layer)?))).collect();
        // Once more: a fetcher that has just released a layer has stored its image before.
        let used = used_layers(dirs, usage);
        for (layer, _lock) in locked.iter().filter(|(layer, _)| !used.contains(file_name(layer))) {
            // Locked until it is renamed: a fetcher that waits for it then finds it missing.
            freed.layers += usize::from(remove::discard(dirs, layer).is_ok());
        }
    }
    for entry in entries(&dirs.pulls()) {
        if !usage.is_pulling(file_name(&entry)) && !is_young(&entry, unused_for) {
            let _ = remove::discard(dirs, &entry);
        }
    }
    for entry in entries(&dirs.temporary()).iter().filter(|entry| is_abandoned(entry)) {
        let _ = remove::discard(dirs, entry);
    }
    freed
}

/// Removes the metadata of unused images. Returns their number.
fn remove_images(dirs: &Dirs, usage: &Usage, unused_for: Duration) -> usize {
    let running = plans(dirs);
    let used: HashSet<&str> = running.iter().map(|plan| plan.image.name.as_str()).collect();
    let is_used = |entry: &Path| {
        // Others are being written.
        if entry.extension().is_none_or(|extension| extension != "json") {
            return true;
        }
        // A start is about to use it.
        if entry.file_stem().and_then(|key| key.to_str()).is_some_and(|key| usage.is_pulling(key)) {
            return true;
        }
        let image: Option<Image> = read_json(entry);
        image.is_some_and(|image| used.contains(&*image.name) || is_young(entry, unused_for))
    };
    let unused = entries(&dirs.images()).into_iter().filter(|entry| !is_used(entry));
    unused.filter(|entry| fs::remove_file(entry).is_ok()).count()
}

/// Layers of containers, of stored and loaded images, and of starts in progress.
fn used_layers(dirs: &Dirs, usage: &Usage) -> HashSet<String> {
    // In this order: a start stores its plan before it ends.
    let mut layers: HashSet<String> = usage.layers().into_iter().collect();
    layers.extend(plans(dirs).into_iter().flat_map(|plan| plan.image.layers));
    let images = entries(&dirs.images()).into_iter().filter_map(|entry| read_json::<Image>(&entry));
    layers.extend(images.flat_map(|image| image.layers));
    layers.extend(loaded_images(dirs).into_iter().flat_map(|loaded| loaded.image.layers));
    layers
}

/// Whether the helper process that created a temporary file was killed. Its name includes the id.
fn is_abandoned(entry: &Path) -> bool {
    let pid = file_name(entry).split('-').find_map(|part| part.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn is_young(path: &Path, age: Duration) -> bool {
    let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed < age))
}

fn entries(directory: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
