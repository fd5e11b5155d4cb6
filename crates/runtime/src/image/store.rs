//! Loaded images: looked up by owner and name, so that no owner can use or replace an image of
//! another.

use std::fs;

use base::locks::named_lock;
use model::image::StoredImage;
use serde::{Deserialize, Serialize};

use super::{Image, is_local_reference, load, reference};
use crate::builtin::{self, BUILTIN_IMAGE};
use crate::dirs::{Dirs, read_json};
use crate::{Container, Embedded, Error, local_name, plans};

/// A loaded image of one owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loaded {
    /// The owner; empty for the built-in image.
    pub(crate) owner: String,
    pub(crate) size_bytes: u64,
    pub(crate) image: Image,
}

/// Owner of the built-in image. No other owner has this name.
pub(super) const NO_OWNER: &str = "";

impl From<Loaded> for StoredImage {
    fn from(Loaded { owner, size_bytes, image }: Loaded) -> Self {
        let is_builtin = owner == NO_OWNER;
        Self { name: image.name, digest: image.digest, size_bytes, is_builtin }
    }
}

impl Embedded {
    /// Loads the images of an archive for an owner. An image of the same name is replaced;
    /// containers that use it are not affected.
    ///
    /// `name` replaces the name in an archive with one image.
    pub async fn load_images(
        &self,
        owner: &str,
        archive: fs::File,
        name: Option<&str>,
    ) -> Result<Vec<StoredImage>, Error> {
        let name = name.map(local_name).transpose()?;
        let _slot = self.pulls.acquire(Some(owner)).await;
        let loaded = load::load(&self.options, owner, Some(archive), name).await?;
        Ok(loaded.into_iter().map(StoredImage::from).collect())
    }

    /// The loaded images of an owner and the built-in one, by name.
    pub async fn stored_images(&self, owner: &str) -> Vec<StoredImage> {
        let (dirs, owner) = (self.dirs.clone(), owner.to_owned());
        let listed = tokio::task::spawn_blocking(move || {
            let own = loaded_images(&dirs).into_iter().filter(|loaded| loaded.owner == owner);
            own.map(StoredImage::from).collect::<Vec<_>>()
        });
        let mut images = listed.await.unwrap_or_default();
        images.push(builtin::builtin_image());
        images.sort_by(|a, b| a.name.cmp(&b.name));
        images
    }

    /// Removes a loaded image of an owner that no container uses. Garbage collection removes its
    /// layers.
    pub async fn remove_image(&self, owner: &str, name: &str) -> Result<(), Error> {
        let name = local_name(name)?;
        // Excludes a start that is about to use it.
        let _layers = self.layers.write().await;
        let not_loaded = || Error::ImageNotLoaded { image: name.clone() };
        let loaded = find(&self.dirs, owner, &name).ok_or_else(not_loaded)?;
        let is_user = |container: &Container| {
            container.owner.as_deref() == Some(owner)
                && reference(&container.image).is_ok_and(|used| used.whole() == loaded.image.name)
        };
        let is_starting = self.usage.containers().iter().any(is_user);
        if is_starting || plans(&self.dirs).iter().any(|plan| is_user(&plan.container)) {
            return Err(Error::ImageInUse { image: name });
        }
        fs::remove_file(self.dirs.loaded_image(owner, &name))
            .map_err(|error| Error::io("Removing the image failed", error))
    }

    /// The local image of a container. No registry is asked for it.
    pub(crate) async fn local_image(&self, container: &Container) -> Result<Image, Error> {
        let reference = reference(&container.image)?;
        debug_assert!(is_local_reference(&reference), "the caller has checked it");
        let name = reference.whole();
        if name == BUILTIN_IMAGE {
            return self.builtin_image().await;
        }
        let loaded = container.owner.as_deref().and_then(|owner| find(&self.dirs, owner, &name));
        loaded
            .filter(|loaded| self.is_stored(&loaded.image))
            .map(|loaded| loaded.image)
            .ok_or(Error::ImageNotLoaded { image: name })
    }

    /// The built-in image, unpacked at its first use. A new version of the program has another one.
    async fn builtin_image(&self) -> Result<Image, Error> {
        let slot = named_lock(&self.images, BUILTIN_IMAGE);
        let _slot = slot.lock().await;
        let stored = find(&self.dirs, NO_OWNER, BUILTIN_IMAGE).map(|loaded| loaded.image);
        let is_current = |image: &Image| image.digest == builtin::digest();
        if let Some(image) = stored.filter(is_current).filter(|image| self.is_stored(image)) {
            return Ok(image);
        }
        let loaded = load::load(&self.options, NO_OWNER, None, None).await?;
        let image = loaded.into_iter().next().map(|loaded| loaded.image);
        image.ok_or_else(|| Error::Helper("The built-in image could not be unpacked.".to_owned()))
    }

    /// Whether all layers of an image are unpacked.
    pub(crate) fn is_stored(&self, image: &Image) -> bool {
        image.layers.iter().all(|chain| self.dirs.layer(chain).exists())
    }
}

fn find(dirs: &Dirs, owner: &str, name: &str) -> Option<Loaded> {
    let loaded: Option<Loaded> = read_json(&dirs.loaded_image(owner, name));
    loaded.filter(|loaded| loaded.owner == owner && loaded.image.name == name)
}

/// The loaded images of all owners.
pub(crate) fn loaded_images(dirs: &Dirs) -> Vec<Loaded> {
    let entries = fs::read_dir(dirs.loaded()).into_iter().flatten().flatten();
    entries.filter_map(|entry| read_json(&entry.path())).collect()
}
