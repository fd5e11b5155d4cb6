//! Images that are loaded into the engine without a registry.
//!
//! An engine has one namespace of images for everything on the machine. So that organizations and
//! installations stay apart, the engine's name of an image contains both.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use base::locks::named_lock;
use bollard::errors::Error as EngineError;
use bollard::models::BuildInfo;
use bollard::query_parameters::{ImportImageOptions, ListImagesOptions, RemoveImageOptions};
use futures_util::{Stream, StreamExt as _, stream};
use model::OrganizationId;
use model::deployment::Pull;
use model::image::{StoreError, StoredImage};
use runtime::{BUILTIN_IMAGE, Repack, builtin_archive, builtin_image, local_name, reference};
use tokio::io::AsyncReadExt as _;

use super::Docker;
use super::fault::innermost;
use crate::Error;
use crate::reason::{NOT_LOADED, not_loaded, not_pulled, not_started};
use crate::runtime::{ImageResult, Images};

/// Size of a chunk of an archive.
const CHUNK: usize = 256 << 10;

impl Docker {
    /// Ensures that the engine has a local image, and returns its name in the engine.
    pub(super) async fn local_image(
        &self,
        organization: Option<OrganizationId>,
        name: &str,
    ) -> Result<String, Error> {
        let whole = reference(name).map_err(|error| not_started(error, name))?.whole();
        if whole == BUILTIN_IMAGE {
            return self.builtin(name).await;
        }
        let missing = || not_pulled(name, Pull::NotLoaded, NOT_LOADED.to_owned()).into();
        let tag = tag(&self.prefix(organization.ok_or_else(missing)?), &whole);
        match self.inspect(&tag).await? {
            Some(_) => Ok(tag),
            None => Err(missing()),
        }
    }

    /// The built-in image, loaded at its first use. Its tag is its digest: a new version of the
    /// program has another one.
    async fn builtin(&self, name: &str) -> Result<String, Error> {
        let digest = builtin_image().digest;
        let version: String = digest.chars().skip_while(|c| *c != ':').skip(1).take(12).collect();
        let tag = format!("localhost/paddock-{}/builtin:{version}", self.options.instance);
        let slot = named_lock(&self.images, BUILTIN_IMAGE);
        let _slot = slot.lock().await;
        if self.inspect(&tag).await?.is_some() {
            return Ok(tag);
        }
        let archive = bollard::body_full(builtin_archive(&tag).into());
        let loading = self.api.import_image(quietly(), archive, None);
        until_loaded(loading).await.map_err(|message| not_pulled(name, Pull::Other, message))?;
        Ok(tag)
    }

    /// Prefix of the engine's names of an organization's images.
    fn prefix(&self, organization: OrganizationId) -> String {
        format!("localhost/paddock-{}/{organization}", self.options.instance)
    }

    async fn load_archive(
        &self,
        organization: OrganizationId,
        archive: File,
        name: Option<&str>,
    ) -> Result<Vec<StoredImage>, StoreError> {
        let scratch =
            Scratch::create(&self.options.dir, self.loads.fetch_add(1, Ordering::Relaxed))?;
        let repack = Repack {
            program: self.options.program.clone(),
            dir: scratch.0.clone(),
            max_bytes: self.options.max_image_bytes,
            timeout: self.options.pull_timeout,
            prefix: self.prefix(organization),
        };
        let repacked = runtime::repack(&repack, archive, name).await;
        let (images, archive) = repacked.map_err(not_loaded)?;
        let archive = tokio::fs::File::open(archive).await.map_err(|error| failed(&error))?;
        let body = bollard::body_try_stream(stream::try_unfold(archive, async |mut archive| {
            let mut chunk = vec![0; CHUNK];
            let size = archive.read(&mut chunk).await?;
            chunk.truncate(size);
            Ok((size > 0).then_some((chunk.into(), archive)))
        }));
        let loading = until_loaded(self.api.import_image(quietly(), body, None));
        let imported = tokio::time::timeout(self.options.pull_timeout, loading).await;
        let imported = imported.unwrap_or_else(|_| Err("timed out".to_owned()));
        imported.map_err(|message| {
            StoreError::Failed(format!(
                "{} failed to load the image: {message}.",
                self.engine.as_str()
            ))
        })?;
        Ok(images)
    }

    async fn list_images(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<StoredImage>, StoreError> {
        let found = self.api.list_images(None::<ListImagesOptions>).await;
        let found = found.map_err(|error| self.store_failed("failed to list images", &error))?;
        let prefix = format!("{}/", self.prefix(organization));
        let mut images = vec![builtin_image()];
        for image in found {
            let own = image.repo_tags.iter().filter_map(|tag| tag.strip_prefix(&prefix));
            images.extend(own.map(|rest| StoredImage {
                name: format!("localhost/{rest}"),
                digest: image.id.clone(),
                size_bytes: u64::try_from(image.size).unwrap_or(0),
                is_builtin: false,
            }));
        }
        images.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(images)
    }

    async fn delete_image(
        &self,
        organization: OrganizationId,
        name: &str,
    ) -> Result<(), StoreError> {
        let name = local_name(name).map_err(not_loaded)?;
        let tag = tag(&self.prefix(organization), &name);
        let in_use = || {
            StoreError::InUse(format!(
                "Image {name} is in use by a container. Stop the container first."
            ))
        };
        if self.has_user(&tag).await? {
            return Err(in_use());
        }
        match self.api.remove_image(&tag, None::<RemoveImageOptions>, None).await {
            Ok(_) => Ok(()),
            Err(EngineError::DockerResponseServerError { status_code: 404, .. }) => {
                Err(StoreError::NotFound(format!("Image {name} is not on this machine.")))
            }
            Err(EngineError::DockerResponseServerError { status_code: 409, .. }) => Err(in_use()),
            Err(error) => Err(self.store_failed("failed to remove the image", &error)),
        }
    }

    /// Whether a container uses the image: engines remove a name that is not the last one at once.
    async fn has_user(&self, tag: &str) -> Result<bool, StoreError> {
        let options =
            bollard::query_parameters::ListContainersOptions { all: true, ..Default::default() };
        let containers = self.api.list_containers(Some(options)).await;
        let containers =
            containers.map_err(|error| self.store_failed("failed to list containers", &error))?;
        Ok(containers.iter().any(|container| container.image.as_deref() == Some(tag)))
    }

    fn store_failed(&self, what: &str, error: &EngineError) -> StoreError {
        StoreError::Failed(self.failed(what, error).to_string())
    }
}

impl Images for Docker {
    fn load<'a>(
        &'a self,
        organization: OrganizationId,
        archive: File,
        name: Option<&'a str>,
    ) -> ImageResult<'a, Vec<StoredImage>> {
        Box::pin(self.load_archive(organization, archive, name))
    }

    fn list(&self, organization: OrganizationId) -> ImageResult<'_, Vec<StoredImage>> {
        Box::pin(self.list_images(organization))
    }

    fn delete<'a>(&'a self, organization: OrganizationId, name: &'a str) -> ImageResult<'a, ()> {
        Box::pin(self.delete_image(organization, name))
    }
}

fn quietly() -> ImportImageOptions {
    ImportImageOptions { quiet: true, ..Default::default() }
}

/// Waits until the engine has loaded an archive. The error is the engine's message.
async fn until_loaded(
    progress: impl Stream<Item = Result<BuildInfo, EngineError>>,
) -> Result<(), String> {
    let mut progress = std::pin::pin!(progress);
    while let Some(step) = progress.next().await {
        step.map_err(|error| innermost(&error))?;
    }
    Ok(())
}

/// Name of a local image in the engine.
fn tag(prefix: &str, name: &str) -> String {
    format!("{prefix}/{}", name.strip_prefix("localhost/").unwrap_or(name))
}

fn failed(error: &std::io::Error) -> StoreError {
    StoreError::Failed(format!("Loading the image failed: {error}."))
}

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn create(parent: &Path, number: u64) -> Result<Self, StoreError> {
        let dir = parent.join(format!("load-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(|error| failed(&error))?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = base::tree::remove(&self.0);
    }
}
