//! Garbage collection of unused images and layers.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::dirs::{Dirs, read_json};
use super::image::Image;
use super::image::store::loaded_images;
use super::{Embedded, lock, plans};

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
    /// interrupted pulls. Retains loaded images: nothing could pull them again. Waits for starts and
    /// loads in progress.
    pub async fn gc(&self, unused_for: Duration) -> Freed {
        let _guard = self.layers.write().await;
        lock(&self.images).clear();
        let dirs = self.dirs.clone();
        tokio::task::spawn_blocking(move || collect(&dirs, unused_for)).await.unwrap_or_default()
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

fn collect(dirs: &Dirs, unused_for: Duration) -> Freed {
    let mut freed = Freed::default();
    let running = plans(dirs);
    let images: HashSet<&str> = running.iter().map(|plan| plan.image.name.as_str()).collect();
    let mut layers: HashSet<String> =
        running.iter().flat_map(|plan| plan.image.layers.iter().cloned()).collect();
    for entry in entries(&dirs.images()) {
        let image: Option<Image> = read_json(&entry);
        match image {
            Some(image) if images.contains(image.name.as_str()) || is_young(&entry, unused_for) => {
                layers.extend(image.layers);
            }
            _ => freed.images += usize::from(fs::remove_file(&entry).is_ok()),
        }
    }
    layers.extend(loaded_images(dirs).into_iter().flat_map(|loaded| loaded.image.layers));
    for entry in entries(&dirs.layers()) {
        let is_used = entry
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| layers.contains(name));
        if !is_used {
            freed.layers += usize::from(discard(dirs, &entry).is_ok());
        }
    }
    for entry in entries(&dirs.pulls()).into_iter().filter(|entry| !is_young(entry, unused_for)) {
        let _ = fs::remove_dir_all(entry);
    }
    freed
}

/// Renames before removing: a layer exists completely or not at all.
fn discard(dirs: &Dirs, layer: &Path) -> std::io::Result<()> {
    let name = layer.file_name().unwrap_or_default();
    let trash = dirs.temporary().join(name);
    fs::rename(layer, &trash)?;
    fs::remove_dir_all(trash)
}

fn is_young(path: &Path, age: Duration) -> bool {
    let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed < age))
}

fn entries(directory: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
