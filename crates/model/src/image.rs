//! Images in the image store of a machine.

/// An image that a machine has without a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage {
    /// Full name: `localhost/NAME:TAG`.
    pub name: String,
    /// Digest of its manifest or configuration.
    pub digest: String,
    /// Size of its uncompressed layers.
    pub size_bytes: u64,
    /// Whether it is part of the program. Every organization can use it and none can delete it.
    pub is_builtin: bool,
}

/// Why an operation on an image store failed. `Display` is a message for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The archive or the name is invalid. Correct it.
    #[error("{0}")]
    Invalid(String),
    /// The image exceeds the size limit.
    #[error("{0}")]
    TooLarge(String),
    /// The organization has no image of this name.
    #[error("{0}")]
    NotFound(String),
    /// The image is in use.
    #[error("{0}")]
    InUse(String),
    /// This server has no image store.
    #[error("{0}")]
    Unsupported(String),
    /// The store failed. Retry later.
    #[error("{0}")]
    Failed(String),
}
