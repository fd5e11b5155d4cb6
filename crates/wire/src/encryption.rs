//! Keys that encrypt stored secrets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Keys of stored secrets, by ID.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EncryptionKeys {
    /// Key that encrypts.
    pub current: String,
    /// Older keys that may still be needed; empty once everything is re-encrypted.
    pub previous: Vec<String>,
    /// Keys of this server that are not used yet.
    pub prepared: Vec<String>,
}

/// A rotation of the key.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rekey {
    /// Whether to only add a key to this server's key file, to be copied to other servers before it
    /// is used; defaults to false.
    pub prepare: Option<bool>,
}
