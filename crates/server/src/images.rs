//! The image store of the local agent's runtime.

use std::fs::File;
use std::sync::Arc;

use agent::Runtime;
use api::{ImageResult, Images, NoImages};
use model::OrganizationId;
use model::image::StoredImage;

/// The image store of the container runtime.
struct LocalImages(Arc<dyn Runtime>);

/// The image store of the local agent.
pub(crate) fn of(runtime: Option<&Arc<dyn Runtime>>) -> Arc<dyn Images> {
    match runtime {
        Some(runtime) if runtime.images().is_some() => Arc::new(LocalImages(runtime.clone())),
        other => Arc::new(NoImages { runtime: other.map(|runtime| runtime.name()) }),
    }
}

impl LocalImages {
    fn images(&self) -> &dyn agent::Images {
        self.0.images().expect("checked when it was created")
    }
}

impl Images for LocalImages {
    fn load(
        &self,
        organization: OrganizationId,
        archive: File,
        name: Option<String>,
    ) -> ImageResult<'_, Vec<StoredImage>> {
        Box::pin(async move { self.images().load(organization, archive, name.as_deref()).await })
    }

    fn list(&self, organization: OrganizationId) -> ImageResult<'_, Vec<StoredImage>> {
        self.images().list(organization)
    }

    fn delete(&self, organization: OrganizationId, name: String) -> ImageResult<'_, ()> {
        Box::pin(async move { self.images().delete(organization, &name).await })
    }
}
