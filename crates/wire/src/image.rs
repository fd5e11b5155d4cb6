//! Images in the image store of the server's machine.

use model::image::StoredImage;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An image that can be deployed without a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Image {
    /// Name to deploy it by: `localhost/NAME:TAG`.
    pub name: String,
    /// Digest of its manifest, or of its configuration if the archive has no manifest.
    pub digest: String,
    /// Size of its uncompressed layers.
    pub size_bytes: u64,
    /// Whether it is part of the server: every organization can deploy it, none can delete it.
    pub is_builtin: bool,
}

impl From<StoredImage> for Image {
    fn from(StoredImage { name, digest, size_bytes, is_builtin }: StoredImage) -> Self {
        Self { name, digest, size_bytes, is_builtin }
    }
}

/// Images of an organization.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Images {
    /// Images, by name.
    pub items: Vec<Image>,
}

impl From<Vec<StoredImage>> for Images {
    fn from(images: Vec<StoredImage>) -> Self {
        Self { items: images.into_iter().map(Image::from).collect() }
    }
}
