//! The image store of the local agent.

use std::fs::File;

use futures_util::future::BoxFuture;
use model::OrganizationId;
use model::image::{StoreError, StoredImage};

/// Result of an operation on the image store.
pub type ImageResult<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Images that were loaded into the store of the local agent. Each belongs to one organization.
pub trait Images: Send + Sync {
    /// Whether images can be loaded; if not, why.
    fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Loads all images of an archive. `name` replaces the name in an archive with one image.
    fn load(
        &self,
        organization: OrganizationId,
        archive: File,
        name: Option<String>,
    ) -> ImageResult<'_, Vec<StoredImage>>;

    /// Returns the organization's images and the built-in one; none without a store.
    fn list(&self, organization: OrganizationId) -> ImageResult<'_, Vec<StoredImage>>;

    /// Deletes an image of the organization that no container uses.
    fn delete(&self, organization: OrganizationId, name: String) -> ImageResult<'_, ()>;
}

/// Image store of a server whose local agent has none.
pub struct NoImages {
    /// Container runtime of the local agent; none without an agent.
    pub runtime: Option<&'static str>,
}

impl NoImages {
    fn reason(&self) -> StoreError {
        let instead = match self.runtime {
            Some(runtime) => format!("its runtime is {runtime}"),
            None => "it has no local agent".to_owned(),
        };
        StoreError::Unsupported(format!(
            "This server has no image store: {instead}. Loading images requires the embedded or docker \
             runtime; push the image to a registry instead."
        ))
    }
}

impl Images for NoImages {
    fn check(&self) -> Result<(), StoreError> {
        Err(self.reason())
    }

    fn load(
        &self,
        _: OrganizationId,
        _: File,
        _: Option<String>,
    ) -> ImageResult<'_, Vec<StoredImage>> {
        Box::pin(async { Err(self.reason()) })
    }

    fn list(&self, _: OrganizationId) -> ImageResult<'_, Vec<StoredImage>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn delete(&self, _: OrganizationId, _: String) -> ImageResult<'_, ()> {
        Box::pin(async { Err(self.reason()) })
    }
}
